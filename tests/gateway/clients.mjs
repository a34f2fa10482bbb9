// The official clients against a gateway, unchanged but for their address: one line of JSON with what they got.
//   node clients.mjs OPENAI ANTHROPIC GENAI ROOT MODEL TOKEN WHAT [WORD...]    (the packages' folders, the gateway without /v1)
// Of a stream, the words are what is asked, one after the other: for each the events as they came, or what the client makes of them.
const [openaiFolder, anthropicFolder, genaiFolder, root, model, token, what, ...words] = process.argv.slice(2);
const {default: OpenAI} = await import(openaiFolder + "/index.mjs");
const {default: Anthropic} = await import(anthropicFolder + "/index.mjs");
const {GoogleGenAI} = await import(genaiFolder + "/dist/node/index.mjs");
let tries = 0;
const counted = (url, init) => { tries++; return fetch(url, init); };
const openai = new OpenAI({baseURL: root + "/v1", apiKey: token, fetch: counted});
const claude = new Anthropic({baseURL: root, apiKey: token, fetch: counted});
const bearer = new Anthropic({baseURL: root, authToken: token, apiKey: null, fetch: counted});
// It takes no fetch of ours.
const realFetch = globalThis.fetch;
const google = new GoogleGenAI({apiKey: token, httpOptions: {baseUrl: root}});
const genai = async (ask) => { globalThis.fetch = (url, init) => { tries++; return realFetch(url, init); }; return ask(google.models); };
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
	genai: () => genai(async (m) => (await m.generateContent({model, contents: "hello", config: {systemInstruction: "s", maxOutputTokens: 16000, temperature: 0.5,
		candidateCount: 3, thinkingConfig: {thinkingBudget: 15999, includeThoughts: true}, safetySettings: [{category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE"}],
		tools: [{functionDeclarations: [{name: "look", description: "d", parametersJsonSchema: tool.parameters}]}]}})).text),
	genaiCount: () => genai(async (m) => (await m.countTokens({model, contents: "hello"})).totalTokens),
	genaiModels: () => genai(async (m) => { const names = []; for await (const x of await m.list({config: {queryBase: true}})) names.push(x.name); return names.join(); }),
	genaiModel: () => genai(async (m) => (await m.get({model})).name),
	genaiHosted: () => genai((m) => m.generateContent({model, contents: "x", config: {tools: [{googleSearch: {}}]}})),
	genaiFile: () => genai((m) => m.generateContent({model, contents: [{role: "user", parts: [{fileData: {fileUri: "https://x", mimeType: "image/png"}}]}]})),
	genaiForeign: () => genai((m) => m.generateContent({model: "gemini-other", contents: "x"})),
	genaiEvents: () => each((contents) => genai(async (m) => all(await m.generateContentStream({model, contents})))),
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
	let own = {};
	try {
		own = JSON.parse(e.message).error; // as Google's clients tell it
	} catch {}
	said = {error: e.constructor.name, status: e.status, code: own.details?.[0].reason ?? e.code ?? e.error?.error?.code, type: e.type ?? e.error?.error?.type};
}
console.log(JSON.stringify({...said, tries}));
