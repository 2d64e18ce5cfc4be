// One turn each through the parsers of the Vercel AI SDK and of AG-UI, the texts of both answers.
import { HttpAgent } from "@ag-ui/client";
import { DefaultChatTransport, readUIMessageStream } from "ai";

const { URL: root, KEY } = process.env;
const api = `${root}/v1/chat`;
const headers = { Authorization: `Bearer ${KEY}` };
const text = "What do people say about plaud.ai?";

const transport = new DefaultChatTransport({ api, headers });
const messages = [{ id: "1", role: "user", parts: [{ type: "text", text }] }];
const stream = await transport.sendMessages({ trigger: "submit-message", chatId: "vercel", messages });
let answer;
for await (answer of readUIMessageStream({ stream }));
const parts = answer.parts.filter((part) => part.type === "text");

const agent = new HttpAgent({ url: api, headers, threadId: "ag-ui" });
agent.messages = [{ id: "1", role: "user", content: text }];
const { newMessages } = await agent.runAgent({});

console.log(JSON.stringify([parts.map((part) => part.text).join(""), newMessages.at(-1).content]));
