// The official clients against a gateway, unchanged but for their address: one line of JSON with what they got.
//   node clients.mjs OPENAI ANTHROPIC ROOT MODEL TOKEN WHAT [WORD...]    (the packages' folders, the gateway without /v1)
// Of a stream, the words are what is asked, one after the other: for each the events as they came, or what the client makes of them.
const [openaiFolder, anthropicFolder, root, model, token, what, ...words] = process.argv.slice(2);
const {default: OpenAI} = await import(openaiFolder + "/index.mjs");
const {default: Anthropic} = await import(anthropicFolder + "/index.mjs");
let tries = 0;
const counted = (url, init) => { tries++; return fetch(url, init); };
const openai = new OpenAI({baseURL: root + "/v1", apiKey: token, fetch: counted});
const claude = new Anthropic({baseURL: root, apiKey: token, fetch: counted});
const bearer = new Anthropic({baseURL: root, authToken: token, apiKey: null, fetch: counted});
const tool = {name: "look", description: "d", parameters: {type: "object", properties: {url: {type: "string"}}}};
const both = {name: "look", description: "d", input_schema: tool.parameters};
const messages = [{role: "user", content: "hello"}];
const image = "data:image/png;base64,iVBORw0KGgo=";
const calls = {
	chat: async () => (await openai.chat.completions.create({model, messages, tools: [{type: "function", function: tool}], tool_choice: "auto",
		temperature: 0.5, user: "me", seed: 7})).choices[0].message.content,
	parts: async () => (await openai.chat.completions.create({model, messages: [{role: "user", content: [{type: "text", text: "a"},
		{type: "image_url", image_url: {url: image}}]}]})).choices[0].message.content,
	models: async () => { const ids = []; for await (const m of openai.models.list()) ids.push(m.id); return ids.join(); },
	responses: async () => (await openai.responses.create({model, input: "hello", instructions: "i", tools: [{type: "function", ...tool, strict: false}],
		metadata: {a: "b"}, store: true})).output_text,
	messages: async () => (await claude.messages.create({model, max_tokens: 16000, messages, tools: [both], system: "s", metadata: {user_id: "u"},
		thinking: {type: "enabled", budget_tokens: 15999}}, {timeout: 60000})).content[0].text,
	bearer: async () => (await bearer.messages.create({model, max_tokens: 100, messages})).content[0].text,
	beta: async () => (await claude.beta.messages.create({model, max_tokens: 100, messages, betas: ["effort-2025-11-24", "files-api-2025-04-14"]})).content[0].text,
	count: async () => (await claude.messages.countTokens({model, messages, tools: [both]})).input_tokens,
	claudeModels: async () => { const ids = []; for await (const m of claude.models.list()) ids.push(m.id); return ids.join(); },
	hosted: () => openai.responses.create({model, input: "x", tools: [{type: "web_search"}]}),
	hostedClaude: () => claude.messages.create({model, max_tokens: 100, messages, tools: [{type: "web_search_20250305", name: "web_search"}]}),
	chatEvents: () => each(async (content) => all(await openai.chat.completions.create({model, messages: [{role: "user", content}], stream: true,
		stream_options: {include_usage: true}}))),
	responsesEvents: () => each(async (input) => all(await openai.responses.create({model, input, stream: true}))),
	messagesEvents: () => each(async (content) => all(await claude.messages.create({model, max_tokens: 100, messages: [{role: "user", content}], stream: true}))),
	chatWhole: () => each((content) => openai.chat.completions.stream({model, messages: [{role: "user", content}],
		stream_options: {include_usage: true}}).finalChatCompletion()),
	responsesWhole: () => each((input) => openai.responses.stream({model, input}).finalResponse()),
	messagesWhole: () => each((content) => claude.messages.stream({model, max_tokens: 100, messages: [{role: "user", content}]}).finalMessage()),
	foreign: () => openai.chat.completions.create({model: "gpt-5.5", messages}),
};
async function all(stream) {
	const events = [];
	for await (const e of stream) events.push(e);
	return events;
}
async function each(ask) {
	const got = [];
	for (const w of words) got.push(await ask(w));
	return got;
}
let said;
try {
	said = {got: await calls[what]()};
} catch (e) {
	said = {error: e.constructor.name, status: e.status, code: e.code ?? e.error?.error?.code, type: e.type ?? e.error?.error?.type};
}
console.log(JSON.stringify({...said, tries}));
