// Uses the examples of the documentation in Chromium as a person would, and prints what was seen.
// node drive.mjs CHROMIUM LIVE SLOW: the browser, and two of the servers that the examples call
import { DefaultChatTransport as Seven } from 'ai';
import { DefaultChatTransport as Six } from 'ai-6';
import { chromium } from 'playwright-core';
import { createServer } from 'vite';

const [browserPath, live, slow] = process.argv.slice(2);
const vite = await createServer({
  logLevel: 'error',
  optimizeDeps: { entries: ['main.jsx', 'made/*'] }, // all at once: one found later reloads the page
  server: { host: 'localhost', port: 0, hmr: false, watch: null },
});
await vite.listen();
const root = `http://localhost:${vite.httpServer.address().port}`;
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });

/** An example in a profile of its own, and what it complained of. */
async function opened(name, prepare = async () => {}) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    // of a conversation that is new the browser itself says that there is none
    if (message.type() === 'error' && !message.text().includes('404')) complaints.push(message.text());
  });
  await prepare(page);
  await page.goto(`${root}/?${name}`);
  return { page, complaints, close: () => context.close() };
}

async function ask(page, question) {
  await page.locator('input').fill(question);
  await page.getByText('Ask').click();
}

/** Until the turn is over. */
async function answered(page) {
  await page.locator('button:not([disabled])', { hasText: 'Ask' }).waitFor();
}

/** The conversation as it stands on the page. */
async function shown(page) {
  return await page.evaluate(() => {
    const texts = (kind) => [...document.querySelectorAll(kind)].map((element) => element.innerText);
    return {
      questions: texts('h2'),
      lookups: texts('article > p').filter((text) => text.includes('about it')),
      points: texts('article li'),
      sources: [...document.querySelectorAll('cite a')].map((link) => [link.innerText, link.getAttribute('href')]),
      notes: texts('em'),
      marks: texts('strong'),
      alert: texts('[role=alert]'),
    };
  });
}

async function talked(name) {
  const { page, complaints, close } = await opened(name);
  await ask(page, 'What do people say about plaud.ai?');
  await page.locator('cite').first().waitFor();
  await answered(page);
  const first = await shown(page);
  await page.reload();
  await page.locator('cite').first().waitFor();
  const reloaded = await shown(page);
  await ask(page, 'and its battery?');
  await page.locator('article').nth(3).waitFor();
  await answered(page);
  const after = await shown(page);
  await close();
  return { first, reloaded, after, complaints };
}

async function stopped(name) {
  const { page, complaints, close } = await opened(name);
  await ask(page, 'What do people say about plaud.ai?');
  await page.getByText('...', { exact: true }).first().waitFor();
  await page.getByText('Stop').click();
  await answered(page);
  const first = await shown(page);
  await page.waitForFunction(
    async (server) => (await fetch(`${server}/v1/chats/${localStorage.listenpost}`)).ok, slow);
  await page.reload();
  await page.locator('h2').first().waitFor();
  const reloaded = await shown(page);
  await close();
  return { first, reloaded, complaints };
}

async function refused(name) {
  const { page, close } = await opened(name, (page) =>
    page.addInitScript(() => { localStorage.listenpost = 'x'.repeat(200); }));
  await ask(page, 'plaud.ai');
  await page.locator('[role=alert]').waitFor();
  const { alert } = await shown(page);
  await close();
  return alert;
}

async function unreachable(name) {
  const { page, close } = await opened(name, (page) => page.route(`${live}/**`, (route) => route.abort()));
  await ask(page, 'plaud.ai');
  await page.locator('[role=alert]').waitFor();
  const { alert } = await shown(page);
  await close();
  return alert;
}

/** What a hostile server could do to the page, since ours lets none of it through. */
async function attacked(name) {
  const text = '**bold** <img src="https://evil.example/1" onerror="window.hurt = 1"> <script>window.hurt = 2</script>'
    + ' [link](javascript:window.hurt=3) ![image](https://evil.example/2)';
  const chunks = [
    { type: 'start' }, { type: 'start-step' }, { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: text }, { type: 'text-end', id: '1' },
    { type: 'source-url', sourceId: 'E1', url: 'javascript:window.hurt=4', title: '<b>E1</b>' },
    { type: 'error', errorText: '<b>internal error</b>' },
  ];
  const requests = [];
  const { page, close } = await opened(name, async (page) => {
    page.on('request', (request) => requests.push(request.url()));
    await page.route(`${live}/v1/chat`, (route) => route.fulfill({
      headers: { 'Access-Control-Allow-Origin': '*', 'Access-Control-Allow-Headers': '*' },
      contentType: 'text/event-stream',
      body: chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(''),
    }));
  });
  await ask(page, 'plaud.ai');
  await page.locator('[role=alert]').waitFor();
  await page.locator('cite a').click();
  const seen = await page.evaluate(() => ({
    hurt: window.hurt ?? null,
    bold: document.querySelector('article strong')?.innerText,
    alert: document.querySelector('[role=alert]').innerText,
    elements: document.querySelectorAll('article img, article script, article p a, article b').length,
  }));
  await close();
  return { ...seen, evil: requests.filter((url) => url.includes('evil')) };
}

async function marked() {
  const { page, complaints, close } = await opened('sample');
  await ask(page, 'ember mug');
  await page.locator('cite').first().waitFor();
  await answered(page);
  const first = await shown(page);
  await page.reload();
  await page.locator('cite').first().waitFor();
  const reloaded = await shown(page);
  await close();
  return { first, reloaded, complaints };
}

async function overAgUi() {
  const printed = [];
  const { page, complaints, close } = await opened('agui', async (page) => {
    page.on('console', async (message) => {
      if (message.type() === 'log') printed.push(await Promise.all(message.args().map((arg) => arg.jsonValue())));
    });
  });
  await page.waitForEvent('console', { predicate: (message) => message.args().length === 3 });
  await page.evaluate(() => 0); // what was printed last has been read by then
  await close();
  return { printed, complaints };
}

/** What a page of this machine and one of another site can do with the API itself. */
async function fetched() {
  const { page, close } = await opened('none');
  const own = await page.evaluate(async (server) => {
    const headers = { 'Content-Type': 'application/json', Prefer: 'respond-async' };
    const body = JSON.stringify({ query: 'hello' });
    const begun = await fetch(`${server}/v1/analyses`, { method: 'POST', headers, body });
    const deleted = await fetch(`${server}/v1/chats/none`, { method: 'DELETE' });
    const mcp = await fetch(`${server}/mcp`, { method: 'POST', headers, body: '{}' });
    return {
      statuses: [begun.status, deleted.status, mcp.status],
      location: begun.headers.get('Location'),
      error: (await deleted.json()).error.code,
    };
  }, live);
  await page.route('http://site.example/', (route) => route.fulfill({ contentType: 'text/html', body: 'a page' }));
  await page.goto('http://site.example/');
  const foreign = await page.evaluate(async (server) => {
    const simple = { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: '{"message": "plaud.ai"}' };
    const tried = [fetch(`${server}/v1/chats`), fetch(`${server}/v1/chat`, simple)];
    return (await Promise.allSettled(tried)).map(({ status }) => status);
  }, live);
  await close();
  return { own, foreign };
}

async function resumed(Transport) {
  return await new Transport({ api: `${live}/v1/chat` }).reconnectToStream({ chatId: 'never seen' });
}

async function used(name) {
  return {
    talked: await talked(name),
    stopped: await stopped(`${name}-slow`),
    refused: await refused(name),
    attacked: await attacked(name),
  };
}

try {
  const [seven, six] = await Promise.all(['seven', 'six'].map(used));
  const [gone, sample, agui, direct] = await Promise.all([unreachable('seven'), marked(), overAgUi(), fetched()]);
  const nothing = [await resumed(Seven), await resumed(Six)];
  console.log(JSON.stringify({ seven, six, unreachable: gone, sample, agui, fetched: direct, resumed: nothing }));
} finally {
  await browser.close();
  await vite.close();
}
