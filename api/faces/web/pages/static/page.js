// What a page can do beyond its links and forms: live lanes, and the drawer of a cited post.

const lanes = document.querySelector('[data-live]');
if (lanes) {
  const events = new EventSource(lanes.dataset.live);
  events.addEventListener('lanes', (event) => {
    renew(JSON.parse(event.data).html);
  });
  events.addEventListener('over', () => {
    events.close();
    location.reload();
  });
}

/** Shows lanes, made of our template, where all is escaped; those that stay are not read aloud again. */
function renew(html) {
  const fresh = document.createElement('div');
  fresh.innerHTML = html;
  const parts = (element) => [...element.querySelectorAll('.lane, .step')];
  const [old, now] = [parts(lanes), parts(fresh)];
  if (old.length !== now.length) lanes.replaceChildren(...fresh.childNodes);
  else old.forEach((part, at) => part.outerHTML === now[at].outerHTML || part.replaceWith(now[at]));
}

const drawer = document.querySelector('#drawer');
if (drawer) {
  document.addEventListener('click', (event) => {
    const cite = event.target.closest('a.cite');
    if (!cite || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const post = document.getElementById(cite.hash.slice(1));
    if (!post) return;
    event.preventDefault();
    show(post, cite.previousElementSibling?.matches('q') ? cite.previousElementSibling.textContent : '');
  });
}

drawer?.addEventListener('click', (event) => event.target === drawer && drawer.close());

/** Opens a copy of a post beside the report; Escape closes it, and the focus goes back. */
function show(post, words) {
  const copy = document.createElement('div');
  copy.append(...[...post.cloneNode(true).childNodes]);
  for (const excerpt of copy.querySelectorAll('.excerpt')) excerpt.remove();
  for (const details of copy.querySelectorAll('details')) details.open = true;
  drawer.querySelector('div').replaceChildren(copy);
  if (!drawer.open) drawer.showModal();
  const plain = (text) => text.replace(/[^\p{L}\p{N}]+/gu, ' ').trim();
  const marks = [...copy.querySelectorAll('mark')];
  const mark = marks.find((each) => plain(words) && plain(each.textContent).includes(plain(words)));
  mark?.classList.add('here');
  mark?.scrollIntoView({ block: 'center' });
}
