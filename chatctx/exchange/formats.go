package exchange

// format is one kind of file.
type format struct {
	name string // as in Incoming.Format, in reports and in the source of messages
	// detect reports from the beginning of a file whether it is of this kind.
	detect func(h *head) bool
	// read reads one file. It returns an error only if nothing more can be read; problems of a part go into the report.
	read func(r *reading) error
}

// formats are all formats that can be read, in the order in which they are tried: the first that fits wins, so narrower signatures come first.
var formats = []format{
	{nativeName, detectNative, readNative},
	{llmName, detectLLM, readLLM},
	{gooseName, detectGooseDB, readGooseDB},
	{cursorName, detectCursorDB, readCursorDB},
	{termLLMName, detectTermLLM, readTermLLM},
	{crushName, detectCrush, readCrush},
	{openCodeName, detectOpenCodeDB, readOpenCodeDB},
	{kiroName, detectKiroDB, readKiroDB},
	{agentsName, detectAgentsDB, readAgentsDB},
	{anythingName, detectAnythingDB, readAnythingDB},
	{zedName, detectZed, readZed},
	{cursorName, detectCursorCLI, readCursorCLI},
	{langGraphName, detectLangGraph, readLangGraph},
	{chatboxName, detectChatbox, readChatbox},
	{janName, detectJan, readJan},
	{lmStudioName, detectLMStudio, readLMStudio},
	{gooseName, detectGoose, readGoose},
	{pydanticName, detectPydantic, readPydantic},
	{aiderName, detectAider, readAider},
	{sillyTavernName, detectSillyTavern, readSillyTavern},
	{gptmeName, detectGptme, readGptme},
	{openCodeName, detectOpenCode, readOpenCode},
	{continueName, detectContinue, readContinue},
	{deepSeekName, detectDeepSeek, readDeepSeek},
	{grokName, detectGrok, readGrok},
	{clineName, detectCline, readCline},
	{qwenName, detectQwen, readQwen},
	{vscodeName, detectVSCode, readVSCode},
	{bigAGIName, detectBigAGI, readBigAGI},
	{anythingName, detectAnything, readAnything},
	{cherryName, detectCherry, readCherry},
	{kiroName, detectKiro, readKiro},
	{cursorName, detectCursor, readCursor},
	{agentsName, detectAgents, readAgents},
	{aichatName, detectAichat, readAichat},
	{"chatgpt", detectChatGPT, readChatGPT},
	{claudeAIName, detectClaudeAI, readClaudeAI},
	{openWebUIName, detectOpenWebUI, readOpenWebUI},
	{libreChatName, detectLibreChat, readLibreChat},
	{claudeCodeName, detectClaudeCode, readClaudeCode},
	{codexName, detectCodex, readCodex},
	{geminiName, detectGemini, readGemini},
	{takeoutName, detectTakeout, readTakeout},
	{aiStudioName, detectAIStudio, readAIStudio},
	{piName, detectPi, readPi},
	{llamaName, detectLlama, readLlama},
	{oasstName, detectOASST, readOASST},
	{langChainName, detectLangChain, readLangChain},
	{vercelName, detectVercel, readVercel},
	{shareGPTName, detectShareGPT, readShareGPT},
	{anthropicName, detectAnthropic, readAnthropic},
	{codexName, detectBareCodex, readCodex},
	{openAIName, detectOpenAI, readOpenAI},
}
