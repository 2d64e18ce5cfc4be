// What the TypeScript SDK makes of the server at the address that is given; prints one JSON object.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const client = new Client({ name: 'calls', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const { tools } = await client.listTools(); // from here on structured content is validated
const progress = [];
const options = { onprogress: (step) => progress.push(step.message), resetTimeoutOnProgress: true };
const call = (name, args) => client.callTool({ name, arguments: args }, undefined, options);
const answers = {
  fetched: await call('fetch_reddit', { query: 'plaud.ai', limit: null, about: '' }),
  whole: await call('fetch_amazon', { query: 'plaud.ai', include_dropped: true }),
  judged: await call('relevance_filter', {
    query: 'ember mug',
    source: 'reddit',
    items: [{ title: 'My Ember mug died' }, { title: 'Coupons for socks' }],
  }),
  report: await call('analyze_product', { query: 'plaud.ai', depth: 'quick' }),
  refused: await call('fetch_reddit', { query: 'plaud.ai', limits: 3 }),
};
const uri = `listenpost://reports/${answers.report.structuredContent.id}`;
const { contents } = await client.readResource({ uri });
const missing = await client
  .readResource({ uri: 'listenpost://reports/none' })
  .catch((error) => ({ code: error.code, message: error.message, data: error.data }));
const { prompts } = await client.listPrompts();
const { messages } = await client.getPrompt({ name: 'compare', arguments: { first: 'a mug', second: 'a cup' } });
console.log(JSON.stringify({ tools, progress, ...answers, report_text: contents[0], missing, prompts, messages }));
await client.close();
