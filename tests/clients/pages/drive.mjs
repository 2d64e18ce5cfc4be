// Uses the pages in Chromium as a person would, and prints what was seen.
// node drive.mjs CHROMIUM SAMPLE SLOW KEYED KEY [FOLDER]: the browser, three servers, the key of the
// last, and where pictures go if there are to be any
import axe from 'axe-core';
import { chromium } from 'playwright-core';
import { firstPaint } from './paint.mjs';

const [browserPath, sample, slow, keyed, key, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
// a browser that no longer answers has no deadline of its own: 3 lets the caller start another
let lastLook = Date.now();
setInterval(() => { if (Date.now() - lastLook > 180_000) process.exit(3); }, 5_000).unref();

/** A page in a profile of its own, and what it complained of: errors, foreign requests, axe. */
async function opened(root, width, options = {}) {
  const colorScheme = width < 500 ? 'dark' : 'light';
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    // that a wrong key or form is refused is said by the browser itself
    if (message.type() === 'error' && !/status of (401|422)/.test(message.text())) complaints.push(message.text());
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(root) && !url.startsWith('data:')) complaints.push(`asked ${url}`);
  });
  return { page, context, complaints };
}

/** Opens the options and filters that are folded. */
async function unfold(page) {
  const folded = page.locator('details:is(.options, .fold):not([open]) > summary');
  for (let left = await folded.count(); left > 0; left -= 1) await folded.first().click();
}

/** What is wrong with a page for people who see little or use no mouse, and whether it fits. */
async function looked(page, name, width, complaints) {
  lastLook = Date.now();
  if (folder) await page.screenshot({ path: `${folder}/${name}-${width}.png`, fullPage: name !== 'drawer' });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 0) complaints.push(`${name} is ${wide} pixels too wide`);
  // the policy lets no script in but the server's, so axe comes by the debugger; of what passes it describes one element
  const { violations } = await page.evaluate(`(() => { ${axe.source}; return axe.run({ resultTypes: ['violations'] }); })()`);
  for (const { id, impact, nodes } of violations) {
    if (['serious', 'critical'].includes(impact)) complaints.push(`${name}: ${id} ${nodes[0].html}`);
  }
}

/** Ask, watch, read, open a citation, take the file. */
async function used(width) {
  const { page, context, complaints } = await opened(slow, width);
  await page.goto(slow);
  await looked(page, 'ask', width, complaints);
  await page.fill('#query', 'plaud.ai');
  await unfold(page);
  await page.check('input[value=quick]');
  const small = await page.locator('.choice input').evaluateAll((inputs) => inputs
    .map((input) => input.getBoundingClientRect()).filter((box) => box.width < 24 || box.height < 24).length);
  const price = page.locator('[data-price=quick]');
  await page.locator('[data-price=quick]:not(:empty)').waitFor();
  const before = await price.innerText();
  await page.uncheck('input[value=youtube]');
  await page.waitForFunction((old) => document.querySelector('[data-price=quick]').textContent !== old, before);
  const fewer = await price.innerText();
  await page.getByText('What would it cost?').click();
  const cost = await page.locator('#estimate').innerText();
  for (const name of ['reddit', 'amazon']) await page.uncheck(`input[value=${name}]`);
  await page.waitForFunction(() => !document.querySelector('#estimate, [data-price]:not(:empty)'));
  await page.locator('.ask button').first().click();
  const wrong = await page.locator('fieldset[aria-describedby=wrong] #wrong').innerText();
  await looked(page, 'nowhere', width, complaints);
  for (const name of ['reddit', 'amazon', 'youtube']) await page.check(`input[value=${name}]`);
  await page.locator('.ask button').first().click();
  await page.waitForURL('**/analyses/*');
  await page.locator('.lane').first().waitFor();
  await page.waitForFunction(() => document.querySelector('.lanes')?.innerText.includes('found'));
  const lanes = await page.locator('.lane strong').allInnerTexts();
  await looked(page, 'live', width, complaints);
  const again = await context.newPage();
  await again.goto(page.url());
  const same = await again.locator('.lane strong').allInnerTexts();
  await page.locator('.claims').first().waitFor();
  await again.close();
  await page.setViewportSize(width < 500 ? { width: 390, height: 844 } : { width, height: 900 });
  const paint = await firstPaint(browser, page.url());
  const fold = await page.locator('.claims strong').evaluateAll((all) => all
    .filter((claim) => claim.getBoundingClientRect().bottom <= innerHeight).length);
  await page.setViewportSize({ width, height: 800 });
  await looked(page, 'report', width, complaints);
  const cite = page.locator('.claims .quote a.cite').first();
  const words = await page.evaluate(() => (document.querySelector('.claims .quote').querySelector('q')
    ?? document.querySelector('.claims strong')).textContent);
  await cite.focus();
  await page.keyboard.press('Enter');
  const drawer = page.locator(width < 500 ? '#drawer' : '.rail .shown');
  await drawer.locator('mark.here').waitFor();
  const mark = await drawer.locator('mark.here').innerText();
  await looked(page, 'drawer', width, complaints);
  if (width < 500) {
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'hidden' });
  }
  const back = await page.evaluate(() => document.activeElement.className);
  await page.getByText('Evidence:').click();
  await unfold(page);
  await page.selectOption('select[name=stage]', 'gate');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL('**stage=gate**');
  const stages = await page.locator('#dropped .stage').allInnerTexts();
  await looked(page, 'evidence', width, complaints);
  await page.goBack();
  await page.goBack();
  await page.getByText('Ask a follow-up').click();
  await page.getByText('Back to the report').click();
  await page.getByText('Save as').click();
  const [download] = await Promise.all([
    page.waitForEvent('download'), page.getByText('HTML', { exact: true }).click(),
  ]);
  const file = download.suggestedFilename();
  await context.close();
  return { cost, before, fewer, small, wrong, lanes, same, words, mark, back, stages, file, fold, paint, complaints };
}

/** Without JavaScript: the sample data's question, waited for by looking again. */
async function plain() {
  const { page, context, complaints } = await opened(sample, 360, { javaScriptEnabled: false });
  await page.goto(sample);
  const banner = await page.locator('.banner').innerText();
  const samples = await page.locator('section button').allInnerTexts();
  await page.locator('section button').first().click();
  await page.locator('.claims').first().waitFor();
  const decision = await page.locator('.claims strong').first().innerText();
  await page.locator('.claims .quote a.cite').first().click();
  const target = await page.locator('li:target').count();
  await context.close();
  return { banner, samples, decision, target, complaints };
}

/** The wrong key, the right one, and out again. */
async function entered(width) {
  const { page, context, complaints } = await opened(keyed, width);
  await page.goto(keyed);
  await page.fill('#key', 'not-the-key');
  await page.getByText('Log in', { exact: true }).last().click();
  const wrong = await page.locator('#wrong').innerText();
  await looked(page, 'login', width, complaints);
  await page.fill('#key', key);
  await page.getByText('Log in', { exact: true }).last().click();
  await page.locator('#query').waitFor();
  const [cookie] = await context.cookies();
  const script = await page.evaluate(() => document.cookie);
  await page.getByText('Log out').click();
  await page.locator('#key').waitFor();
  await page.goto(`${keyed}/`);
  const out = new URL(page.url()).pathname;
  await context.close();
  const { httpOnly, sameSite, path } = cookie;
  return { wrong, cookie: { httpOnly, sameSite, path }, held: cookie.value.includes(key), script, out, complaints };
}

/** A live page whose stream is answered with an error, and which comes to its report all the same. */
async function recovered(width) {
  const { page, context, complaints } = await opened(slow, width);
  await page.goto(slow);
  let refused = 0;
  await page.route('**/live', (route) => (refused++ ? route.continue() : route.fulfill({ status: 502 })));
  await page.fill('#query', 'Plaud NotePin'); // the chats ask for others as what nobody has looked for
  await unfold(page);
  await page.check('input[value=quick]');
  await page.locator('.ask button').first().click();
  await page.locator('.claims').first().waitFor();
  await context.close();
  return { refused, complaints: complaints.filter((each) => !each.includes('502')) };
}

/** A report by its link, in a browser that has no key, before and after the link is ended. */
async function shared(width) {
  const owner = await opened(keyed, width);
  const { page, complaints } = owner;
  await page.goto(keyed);
  await page.fill('#key', key);
  await page.getByText('Log in', { exact: true }).last().click();
  await page.locator('section button').first().click();
  await page.locator('.claims').first().waitFor();
  await page.getByText('Share a link').click();
  await page.getByText('Make a link').click();
  const link = await page.locator('#address').inputValue();
  await looked(page, 'share', width, complaints);
  const guest = await opened(keyed, width);
  await guest.page.goto(link);
  const decision = await guest.page.locator('.claims strong').first().innerText();
  await guest.page.locator('.claims .quote a.cite').first().click();
  await guest.page.locator('#drawer mark.here').waitFor();
  await guest.page.keyboard.press('Escape');
  await looked(guest.page, 'shared', width, guest.complaints);
  const menu = await guest.page.locator('nav, form:not([method=dialog])').count();
  await page.getByText('End the link').click();
  await page.getByText('There is no link.').waitFor();
  const ended = (await guest.page.context().request.get(link)).status();
  await owner.context.close();
  await guest.context.close();
  return { decision, menu, ended, complaints: [...complaints, ...guest.complaints] };
}

/** A report asked on: by an example, and with script watched, stopped, and cut off. */
async function conversed(root, width, options = {}) {
  const { page, context, complaints } = await opened(root, width, options);
  const scripted = options.javaScriptEnabled !== false;
  const say = async (words) => {
    await page.fill('#message', words);
    await page.keyboard.press('Enter');
  };
  await page.goto(root);
  await page.fill('#query', 'plaud.ai');
  await unfold(page);
  await page.check('input[type=radio][value=quick]');
  await page.locator('.ask button').first().click();
  await page.locator('.claims').first().waitFor();
  await page.getByText('Ask a follow-up').click();
  const examples = await page.locator('.examples button').allInnerTexts();
  if (scripted) await looked(page, 'chat-begins', width, complaints);
  await page.locator('.examples button').first().click();
  await page.locator('#turn-2 .evidence').waitFor();
  const answer = await page.locator('#turn-2 .answer').innerText();
  const words = await page.locator('#turn-2 .evidence small').allInnerTexts();
  await page.locator('#turn-2 a.cite').first().click();
  const target = await page.locator('#turn-2 li:target').count();
  const seen = { examples, answer, words, target, complaints };
  if (scripted) {
    await looked(page, 'chat', width, complaints);
    await say('and what about the Ember mug?');
    await page.locator('#live li').first().waitFor();
    seen.lookup = await page.locator('#live li').first().innerText();
    await page.locator('#turn-3 .evidence').waitFor();
    await page.waitForFunction(() => {
      const { top } = document.querySelector('#turn-3').getBoundingClientRect(); // a short answer stays where the page ends
      return top > -400 && top < innerHeight - 100;
    });
    await say('and compare it with the Oura ring');
    await page.locator('#live li').first().waitFor();
    await page.locator('#stop').focus();
    await page.keyboard.press('Enter');
    await page.locator('#begin').waitFor();
    seen.stopped = await page.locator('#live').innerText();
    await looked(page, 'chat-live', width, complaints); // one that ends by itself leads elsewhere
    seen.typed = await page.inputValue('#message');
    await say('hello');
    await page.locator('#live .answer').waitFor();
    await page.locator('#begin').waitFor();
    await page.reload();
    seen.after = await page.locator('.turn').last().innerText();
    seen.complaints = [...complaints]; // the browser complains of being offline
    await context.setOffline(true);
    await say('and the lid?');
    await page.locator('#wrong:not(:empty)').waitFor();
    seen.lost = [await page.locator('#wrong').innerText(), await page.inputValue('#message')];
  } else {
    await say('hello there');
    await page.locator('h2', { hasText: 'hello there' }).waitFor();
    seen.guidance = await page.locator('.turn').last().innerText();
  }
  await context.close();
  return seen;
}

/** Asked when the login has ended: in words, and what was typed is there after the next one. */
async function endedLogin(width) {
  const { page, context, complaints } = await opened(keyed, width);
  const logIn = async () => {
    await page.fill('#key', key);
    await page.getByText('Log in', { exact: true }).last().click();
  };
  await page.goto(keyed);
  await logIn();
  await page.locator('section button').first().click();
  await page.locator('.claims').first().waitFor();
  await page.getByText('Ask a follow-up').click();
  await page.fill('#message', 'and the battery?');
  await context.clearCookies();
  await page.keyboard.press('Enter');
  await page.locator('#login a').waitFor();
  const wrong = await page.locator('#wrong').innerText();
  await looked(page, 'chat-ended', width, complaints);
  await page.locator('#login a').click();
  await logIn();
  await page.waitForFunction(() => document.querySelector('#message')?.value);
  const typed = await page.inputValue('#message');
  await page.locator('#begin').click();
  await page.locator('#turn-2 .evidence').waitFor();
  await context.close();
  return { wrong, typed, complaints };
}

/** Two products side by side, what was asked, what is stored, a watch, the gate and the sources. */
async function lookedAround(width, options = {}) {
  const { page, context, complaints } = await opened(sample, width, options);
  const scripted = options.javaScriptEnabled !== false;
  const looks = async (name) => scripted && looked(page, name, width, complaints);
  const menu = async (name) => {
    if (await page.locator('.menu').isVisible()) await page.locator('.menu').click();
    await page.locator('#pages').getByText(name, { exact: true }).click();
    await page.locator('#pages a[aria-current=page]', { hasText: name }).waitFor({ state: 'attached' });
  };
  await page.goto(sample);
  await menu('Compare');
  await page.fill('#product-1', 'Oura');
  await page.fill('#product-2', 'Whoop');
  await looks('compare');
  await unfold(page);
  await page.selectOption('#depth', 'quick');
  await looks('compare-options');
  await page.locator('main').getByRole('button', { name: 'Compare' }).click();
  await page.getByText('Compare anyway').click();
  await page.waitForURL('**/compare/between?*');
  await page.locator('h1', { hasText: 'compared' }).waitFor();
  await looks('comparison');
  await page.locator('.counts summary').click();
  const table = await page.locator('.counts table').innerText();
  await menu('History');
  for (const at of [0, 1]) await page.locator('input[name=analysis]').nth(at).check();
  await page.getByText('Compare selected reports').click();
  const ticked = await page.locator('h1', { hasText: 'compared' }).innerText();
  await page.getByText('Save as').click();
  const [export_] = await Promise.all([
    page.waitForEvent('download'), page.getByText('Markdown', { exact: true }).click(),
  ]);
  const file = export_.suggestedFilename();
  await menu('History');
  await unfold(page);
  await page.fill('#text', 'whoop');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL('**text=whoop**');
  const history = await page.locator('ul.sources > li > a').allInnerTexts();
  await looks('history');
  await menu('Search');
  await page.fill('#q', 'Oura battery');
  await page.locator('.line button').click();
  await page.locator('ol.sources mark').first().waitFor();
  const marks = await page.locator('ol.sources mark').allInnerTexts();
  await looks('search');
  await menu('Watches');
  await page.fill('#query', 'Oura');
  await unfold(page);
  await page.selectOption('#depth', 'quick');
  await page.fill('#name', `Oura at ${width} ${scripted}`);
  await looks('watches');
  await page.getByText('Watch it', { exact: true }).click();
  await page.getByRole('button', { name: 'Run now' }).click();
  const run = await page.locator('ul.sources > li').first().innerText();
  await looks('watch');
  await page.getByText('Change', { exact: true }).click();
  await page.fill('#every', 'daily 07:30');
  await looks('edit-watch');
  await page.getByText('Save', { exact: true }).click();
  const due = await page.locator('main small').first().innerText();
  await page.getByText('Make a feed').click();
  const address = await page.locator('#feed').inputValue();
  const feed = (await page.request.get(address)).headers()['content-type'];
  await looks('feed');
  await menu('Relevance');
  await looks('gate');
  await page.locator('figure .data summary').first().click();
  const gate = await page.locator('figure table').first().innerText();
  await menu('Sources');
  await page.getByText('Try each now').click();
  await page.locator('#answers strong').first().waitFor();
  const answers = await page.locator('#answers strong').allInnerTexts();
  await looks('sources');
  await menu('History');
  await page.getByText('Delete', { exact: true }).first().click();
  await page.getByText('Delete it').click();
  const gone = new URL(page.url()).pathname;
  await context.close();
  return { table, ticked, file, history, marks, run, due, feed, gate, answers, gone, complaints };
}

/** Ask for a name on the sample server, also where it is called an everyday word first. */
async function askedFor(page, name) {
  await page.goto(sample);
  await page.fill('#query', name);
  await unfold(page);
  await page.check('input[type=radio][value=standard]');
  await page.locator('.ask button').first().click();
  const anyway = page.getByRole('button', { name: 'Ask anyway' });
  await page.locator('.claims').or(anyway).first().waitFor();
  if (await anyway.count()) await anyway.click();
  await page.locator('.claims').first().waitFor();
}

/** A report whose posts are judged again by the judge on this machine, beside the report as it was. */
async function replayed(width, options = {}) {
  const { page, context, complaints } = await opened(sample, width, options);
  const scripted = options.javaScriptEnabled !== false;
  await askedFor(page, 'Ember mug');
  const report = page.url();
  await page.locator('summary', { hasText: 'Judge again' }).click();
  await page.getByText('This form with its price').click();
  await page.locator('#again-about').fill('a heated mug');
  await page.locator('#again-judge').selectOption('local');
  if (scripted) await looked(page, 'replay-form', width, complaints);
  await page.getByRole('button', { name: 'What would it cost?' }).click();
  const price = await page.locator('[role=status]').innerText();
  const typed = await page.locator('#again-about').inputValue();
  await page.getByRole('button', { name: 'Judge again', exact: true }).click();
  await page.locator('.decision').waitFor();
  const summary = await page.locator('.decision').innerText();
  const rows = await page.locator('main table th[scope=row]').allInnerTexts();
  const sides = await page.locator('main table tr', { hasText: 'What it is' }).first().innerText();
  if (scripted) await looked(page, 'replay', width, complaints);
  await page.getByText('Back to the report').click();
  await page.waitForURL(report);
  await context.close();
  return { price, typed, summary, rows, sides, complaints };
}

/** How many of some buttons are lower or narrower than a fingertip needs. */
async function tooSmall(buttons) {
  return buttons.evaluateAll((all) => all.map((button) => button.getBoundingClientRect())
    .filter((box) => box.width < 24 || box.height < 24).length);
}

/** A name of several things: one of them taken, then a post corrected, and both judged again. */
async function corrected(name, width) {
  const { page, context, complaints } = await opened(sample, width);
  await askedFor(page, name);
  const groups = await page.locator('.senses li').allInnerTexts();
  const ahead = await page.evaluate(() => document.querySelector('.senses').getBoundingClientRect().bottom
    <= Math.min(...[...document.querySelectorAll('.claims')].map((each) => each.getBoundingClientRect().top)));
  let small = await tooSmall(page.locator('.senses button'));
  await looked(page, 'groups', width, complaints);
  const first = page.url();
  await page.getByRole('button', { name: 'Only this one' }).first().click();
  await page.waitForURL((url) => url.href !== first);
  await page.locator('.claims').first().waitFor();
  const taken = { described: await page.locator('#about li', { hasText: 'Described as' }).textContent(), groups: await page.locator('.senses').count() };
  await looked(page, 'one-group', width, complaints);
  await page.getByText('Evidence:').click();
  await page.locator('#kept .correction').first().waitFor();
  const post = page.locator('#kept ol.sources > li').last();
  const id = await post.getAttribute('id');
  const value = await post.getByRole('button', { name: /^Mark as not about/ }).getAttribute('value');
  small += await tooSmall(page.locator('.correction button'));
  await post.getByRole('button', { name: /^Mark as not about/ }).click();
  const target = page.locator('li:target');
  await target.getByText(/^You marked this as not about/).waitFor();
  const back = [id, await target.getAttribute('id')];
  const { y } = await target.boundingBox();
  const inView = y > -1 && y < 800;
  const again = page.getByRole('button', { name: 'Judge these posts again with 1 correction' });
  small += await tooSmall(page.locator('.correction button')) + await tooSmall(again);
  await looked(page, 'corrected', width, complaints);
  await again.click();
  await page.waitForURL((url) => !url.pathname.endsWith('/evidence'));
  await page.locator('.claims').first().waitFor();
  await page.getByText('Evidence:').click();
  const undo = `button[value="${value.replace('no ', 'undo ')}"]`;
  await page.locator(undo).waitFor();
  const kept = await page.locator('#kept').locator(`${undo}, button[value="${value}"]`).count();
  const dropped = await page.locator('#dropped').locator(undo).count();
  await looked(page, 'judged-again', width, complaints);
  await context.close();
  return { groups, ahead, small, taken, back, inView, kept, dropped, complaints };
}

/** Without JavaScript: the group taken before is still meant, and the correction is taken back. */
async function remembered(name) {
  const { page, context, complaints } = await opened(sample, 360, { javaScriptEnabled: false });
  await askedFor(page, name);
  const groups = await page.locator('.senses').count();
  const described = await page.locator('#about li', { hasText: 'Described as' }).textContent();
  await page.getByText('Evidence:').click();
  const undo = page.locator('#dropped').getByRole('button', { name: 'Undo' });
  const before = await undo.count();
  await undo.click();
  await page.locator('#dropped li:target').getByRole('button', { name: /^Mark as about/ }).waitFor();
  const after = await page.getByRole('button', { name: 'Undo' }).count();
  await context.close();
  return { groups, described, before, after, complaints };
}

/** What a watch told, worked off by the keyboard; without script by the buttons. */
async function triaged(width, options = {}) {
  const { page, context, complaints } = await opened(sample, width, options);
  const scripted = options.javaScriptEnabled !== false;
  await page.goto(`${sample}/watches`);
  await page.fill('#query', 'Ember mug');
  await page.fill('#every', 'every 31 days');
  await page.locator('details.options > summary').click();
  await page.selectOption('#depth', 'quick');
  await page.fill('#name', `Triage at ${width} ${scripted}`);
  await page.check('input[name=tell_first]');
  await page.getByText('Watch it', { exact: true }).click();
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.locator('ul.sources > li').first().waitFor();
  await page.goto(`${sample}/inbox`);
  const marks = page.locator('[data-entry]');
  const ids = await marks.evaluateAll((all) => all.map((entry) => entry.id));
  const unread = async () => Number((await page.title()).match(/\((\d+)\)/)?.[1] ?? 0);
  const counts = [await unread()];
  const said = (words) => page.locator('[role=status]', { hasText: words }).waitFor();
  const act = async (key, name, words) => {
    if (scripted) await page.keyboard.press(key);
    else if (key === 'u') await page.getByRole('button', { name }).click();
    else await marks.first().getByRole('button', { name, exact: true }).click();
    if (words) await said(words);
    counts.push(await unread());
  };
  if (scripted) await page.keyboard.press('j');
  await act('s', 'Star', 'Starred');
  await act('e', 'Done', 'Marked as read');
  const focused = await page.evaluate(() => document.activeElement.id);
  await act('u', 'Undo');
  await page.locator(`#${ids[0]}`).waitFor();
  await act('n', 'Not about it', 'Marked as not about it');
  await act('u', 'Undo');
  await page.locator(`#${ids[0]}`).waitFor();
  counts.push(await unread());
  const small = scripted ? await tooSmall(page.locator('.entries button:visible')) : 0;
  let [draft, stayed] = ['', ''];
  if (scripted) {
    await page.locator('[data-entry] summary').first().click();
    await marks.first().locator('textarea').fill('not saved yet');
    await marks.nth(1).getByRole('button', { name: 'Star', exact: true }).click();
    await said('Starred');
    draft = await marks.first().locator('textarea').inputValue();
    await page.locator(`#${ids[0]}`).focus();
    await page.keyboard.press('?');
    await page.locator('#keys dl').waitFor();
    await looked(page, 'inbox', width, complaints);
    await page.getByRole('button', { name: 'Switch the shortcuts off' }).click();
    await page.locator('#keys:not([data-on]) > summary').click();
    await page.locator(`#${ids[0]}`).focus();
    await page.keyboard.press('j');
    stayed = await page.evaluate(() => document.activeElement.id);
    await page.getByRole('button', { name: 'Switch the shortcuts on' }).click();
    await page.locator('#keys[data-on]').waitFor();
    await page.locator(`#${ids[0]}`).focus();
    await page.keyboard.press('/');
    await page.keyboard.type('no such words');
    await page.keyboard.press('Enter');
  } else {
    await page.goto(`${sample}/inbox?text=no+such+words`);
  }
  await page.getByText('No entry fits this filter.').waitFor();
  await context.close();
  return { ids, counts, focused, small, draft, stayed, complaints };
}

// the servers have nothing in common, so each is used beside the others, by one journey after another
async function ofSlow() {
  return { wide: await used(1280), narrow: await used(360), recovered: await recovered(1280),
    chats: [await conversed(slow, 1280), await conversed(slow, 360)] };
}

async function ofKeyed() {
  return { entered: [await entered(1280), await entered(360)], shared: await shared(360), ended: await endedLogin(360) };
}

async function ofSample() {
  return { plain: await plain(), chat: await conversed(sample, 360, { javaScriptEnabled: false }),
    corrected: [await corrected('arc', 1280), await corrected('bolt', 360)],
    remembered: await remembered('arc'),
    around: [await lookedAround(1280), await lookedAround(360), await lookedAround(360, { javaScriptEnabled: false })],
    replayed: [await replayed(1280), await replayed(390), await replayed(390, { javaScriptEnabled: false })],
    inbox: [await triaged(1280), await triaged(390), await triaged(390, { javaScriptEnabled: false })] };
}

const [first, second, { chat, ...third }] = await Promise.all([ofSlow(), ofKeyed(), ofSample()]);
const seen = { ...first, ...second, ...third, chats: [...first.chats, chat] };
await browser.close();
console.log(JSON.stringify(seen));
