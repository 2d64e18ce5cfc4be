// What a page can do beyond its links and forms: live lanes, prices of what is ticked, the drawer of a cited
// post, a chat as it is said, the inbox by keyboard.

const lanes = document.querySelector('[data-live]');
let events = null;
if (lanes) {
  listen();
  // a browser opens few connections to one server: who is not looked at, or leaves, holds none
  document.addEventListener('visibilitychange', () => (document.hidden ? hush() : listen()));
  document.addEventListener('submit', hush);
}

/** Shows the lanes as they change, and what is here once they have ended. */
function listen() {
  hush();
  events = new EventSource(lanes.dataset.live);
  events.addEventListener('lanes', (event) => renew(lanes, JSON.parse(event.data).html));
  events.addEventListener('over', () => {
    hush();
    location.reload();
  });
  events.addEventListener('error', () => events?.readyState === EventSource.CLOSED && lookAgain());
}

function hush() {
  events?.close();
  events = null;
}

/** After an answer that ends a stream: waits until the server answers, then shows what it says. */
async function lookAgain() {
  const answer = await fetch(location.href).catch(() => null);
  if (answer && answer.status < 500 && answer.status !== 429) location.reload();
  else setTimeout(lookAgain, 3000);
}

/** Shows markup, made of our templates, where all is escaped. */
function renew(place, html) {
  const fresh = document.createElement('div');
  fresh.innerHTML = html;
  grow(place, fresh);
}

/** Makes a part like a fresh one; what stays is not touched, so that it is not read aloud again. */
function grow(part, fresh) {
  const nodes = [...fresh.childNodes];
  nodes.forEach((node, at) => {
    const old = part.childNodes[at];
    if (!old) part.append(node);
    else if (old.isEqualNode(node)) return;
    else if (node.data?.startsWith(old.data)) old.appendData(node.data.slice(old.length));
    else if (node.tagName && old.cloneNode().isEqualNode(node.cloneNode())) grow(old, node);
    else old.replaceWith(node);
  });
  while (part.childNodes.length > nodes.length) part.lastChild.remove();
}

const form = document.querySelector('form[data-prices]');
let pricing = null; // under way: what was chosen since makes it stale
form?.addEventListener('change', async () => {
  pricing?.abort();
  pricing = new AbortController();
  const { signal } = pricing;
  const fields = new URLSearchParams(new FormData(form));
  for (const name of ['csrf', 'about', 'sure']) fields.delete(name); // no price depends on them
  let prices = {};
  try {
    const answer = await fetch(`${form.dataset.prices}?${fields}`, { signal });
    if (answer.ok) prices = await answer.json();
  } catch {
    if (signal.aborted) return; // else no price is better than one of something else
  }
  document.querySelector('#estimate')?.remove();
  const depth = fields.get('depth');
  const places = fields.getAll('source').filter(Boolean).length;
  const parts = [depth, `${places} place${places === 1 ? '' : 's'}`, prices[depth]].filter(Boolean);
  const chosen = document.querySelector('#chosen');
  if (chosen) chosen.textContent = parts.join(', ');
  for (const price of form.querySelectorAll('[data-price]')) price.textContent = prices[price.dataset.price] ?? '';
});

const drawer = document.querySelector('#drawer');
if (drawer) {
  document.addEventListener('click', (event) => {
    const cite = event.target.closest('a.cite');
    if (!cite || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const post = document.getElementById(cite.hash.slice(1));
    if (!post) return;
    event.preventDefault();
    const quote = cite.previousElementSibling?.matches('q') ? cite.previousElementSibling : null;
    const words = (quote ?? cite.closest('.claims > li')?.querySelector('strong'))?.textContent ?? '';
    if (post.closest('.rail') && matchMedia('(min-width: 72rem)').matches) reveal(post, words, cite);
    else show(post, words);
  });
}

drawer?.addEventListener('click', (event) => event.target === drawer && drawer.close());

/** Opens a copy of a post over the report; Escape closes it, and the focus goes back. */
function show(post, words) {
  const copy = document.createElement('div');
  copy.className = 'shown';
  copy.append(...post.cloneNode(true).childNodes);
  drawer.querySelector('div').replaceChildren(copy);
  if (!drawer.open) drawer.showModal();
  mark(copy, words);
}

/** Shows a post alone in the column beside the report. */
function reveal(post, words, cite) {
  const rail = post.closest('.rail');
  const close = rail.querySelector('#close');
  rail.querySelector('.shown')?.classList.remove('shown');
  post.classList.add('shown');
  rail.classList.add('alone');
  const around = post.closest('.rail > details');
  if (around) around.open = true;
  close.hidden = false;
  close.onclick = () => {
    rail.classList.remove('alone');
    post.classList.remove('shown');
    close.hidden = true;
    rail.scrollTop = post.offsetTop - rail.offsetTop - 60;
    cite.focus({ preventScroll: true });
  };
  rail.scrollTop = 0;
  mark(post, words);
}

document.addEventListener('keydown', (event) => event.key === 'Escape' && document.querySelector('.alone #close')?.click());

/** Makes the words of a claim stand out in a post, and shows all of its text. */
function mark(copy, words) {
  for (const details of copy.querySelectorAll('details')) details.open = true;
  for (const other of document.querySelectorAll('mark.here')) other.classList.remove('here');
  const plain = (text) => text.replace(/[^\p{L}\p{N}]+/gu, ' ').trim();
  const marks = [...copy.querySelectorAll('mark')];
  const here = marks.find((each) => plain(words)
    && (plain(each.textContent).includes(plain(words)) || plain(words).includes(plain(each.textContent))));
  here?.classList.add('here');
  here?.scrollIntoView({ block: 'nearest' });
}

const live = document.querySelector('#live');
if (live) {
  const [field, wrong, login, begin, stop] = ['message', 'wrong', 'login', 'begin', 'stop'].map((id) => document.getElementById(id));
  document.getElementById(location.hash.slice(1))?.scrollIntoView();
  let turn = null; // under way: aborting it hangs up, which ends it
  field.value = sessionStorage.getItem('typed') ?? field.value;
  sessionStorage.removeItem('typed');
  stop.addEventListener('click', () => turn.abort());
  document.addEventListener('submit', async (event) => {
    if (!event.target.matches('form[data-turn]')) return;
    event.preventDefault();
    if (turn) return;
    turn = new AbortController();
    const fields = new FormData(event.target, event.submitter);
    field.value = fields.get('message');
    wrong.textContent = '';
    login.hidden = begin.hidden = true;
    stop.hidden = false;
    if (document.activeElement !== field) stop.focus();
    const end = await converse(event.target.action, fields, turn.signal);
    turn = null;
    stop.hidden = true;
    begin.hidden = false;
    if (end.place) return leave(end.place);
    if (live.firstChild) history.replaceState(null, '', `${event.target.action}/${fields.get('session')}`);
    wrong.textContent = end.message ?? '';
    login.hidden = end.status !== 401;
    // to ask it, the page has to be loaded anew
    if ([401, 403].includes(end.status)) sessionStorage.setItem('typed', field.value);
    field.focus();
  });
}

/** Shows a turn as it happens; gives the place where it is kept, or a message why there is none. */
async function converse(address, fields, signal) {
  if (live.firstChild) live.before(...live.childNodes);
  const add = (name, words) => live.append(Object.assign(document.createElement(name), { textContent: words }));
  let begun = false;
  add('h2', fields.get('message'));
  try {
    const headers = { Accept: 'text/event-stream' };
    const answer = await fetch(address, { method: 'POST', body: new URLSearchParams(fields), headers, signal });
    if (!answer.ok) return { status: answer.status, message: (await answer.json()).error.message };
    for await (const { kind, data } of eventsOf(answer)) {
      if (kind !== 'turn') return kind === 'over' ? data : data.error;
      begun = true;
      renew(live, data.html);
    }
  } catch {
    if (signal.aborted && begun) add('p', 'Stopped before it was complete.');
    if (signal.aborted) return {};
  } finally {
    if (!begun) live.replaceChildren();
  }
  return { message: 'The connection was lost before the answer was complete. Your question is still here.' };
}

/** The events of an answer as they come; comments between them keep the connection open. */
async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = '', part = await reader.read(); !part.done; part = await reader.read()) {
    const blocks = (text + part.value).split('\n\n');
    text = blocks.pop();
    for (const block of blocks) {
      const [, kind, data] = block.match(/^event: (.*)\ndata: (.*)$/m);
      yield { kind, data: JSON.parse(data) };
    }
  }
}

/** Goes to a place; if that is on this page, it is loaded anew. */
function leave(place) {
  const here = new URL(place, location).pathname === location.pathname;
  history.scrollRestoration = 'manual'; // else a page that is loaded anew shows what it showed before
  location.assign(place);
  if (here) location.reload();
}

const inbox = document.querySelector('#inbox');
if (inbox) {
  const entries = () => [...inbox.querySelectorAll('[data-entry]')];
  const at = () => entries().findIndex((entry) => entry.contains(document.activeElement));
  document.addEventListener('keydown', (event) => {
    if (!inbox.querySelector('#keys[data-on]')) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, textarea')) return;
    const [all, here] = [entries(), at()];
    const step = { j: 1, k: -1 }[event.key];
    const text = event.key === '/' && document.querySelector('#text');
    if (step) all[Math.min(Math.max(here + step, 0), all.length - 1)]?.focus();
    else if (text) {
      text.closest('details').open = true;
      text.focus();
    } else {
      const key = `[data-key="${CSS.escape(event.key)}"]`;
      const button = all[here]?.querySelector(key) ?? [...inbox.querySelectorAll(key)].find((each) => !each.closest('[data-entry]'));
      if (!button) return;
      button.click();
      if (event.key === '?') button.scrollIntoView({ block: 'nearest' });
    }
    event.preventDefault();
  });
  let turn = Promise.resolve(); // what was done is sent in its order
  inbox.addEventListener('submit', (event) => {
    if (event.target.method !== 'post') return;
    event.preventDefault();
    const { submitter } = event;
    const fields = new URLSearchParams(new FormData(event.target, submitter));
    turn = turn.then(() => send(event.target.getAttribute('action'), fields, submitter.dataset.entryOf));
    const entry = submitter.closest('[data-entry]');
    if (entry && inbox.dataset.show === 'unread' && /^(read|not_about) /.test(submitter.value)) {
      // at once, so that the next key is for the next entry
      (entry.nextElementSibling ?? entry.previousElementSibling)?.focus();
      entry.remove();
    }
  });

  /** Does what a button says, and shows the page that answers in place of this one; the focus stays at its entry. */
  async function send(address, fields, entryOf) {
    const html = await fetch(address, { method: 'POST', body: fields }).then((answer) => answer.text()).catch(() => '');
    const fresh = new DOMParser().parseFromString(html, 'text/html');
    if (!fresh.querySelector('#inbox')) return location.reload(); // the login has ended, or nobody answers
    const place = at();
    const id = entryOf ?? entries()[place]?.id;
    // what somebody is typing stays, and so does the focus in it
    const left = [...inbox.querySelectorAll('textarea, input[id]')]
      .map((field) => ({ field, focused: field === document.activeElement }))
      .filter(({ field, focused }) => (focused || field.value !== field.defaultValue)
        && ![fields.get('note'), fields.get('name'), fields.get('assigned')].includes(field.value));
    for (const part of ['#inbox', '.top']) grow(document.querySelector(part), fresh.querySelector(part));
    document.title = fresh.title;
    for (const { field: old, focused } of left) {
      const field = document.getElementById(old.id);
      if (!field) continue;
      field.value = old.value;
      field.closest('details').open = true;
      if (focused) field.setSelectionRange(old.selectionStart, old.selectionEnd);
      if (focused) field.focus();
    }
    if (document.activeElement.matches('textarea, input')) return;
    const all = entries();
    (document.getElementById(id) ?? all[Math.min(place, all.length - 1)])?.focus();
  }
}
