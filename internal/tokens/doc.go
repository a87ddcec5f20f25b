// Package tokens says how large a draft is for a model: how many tokens it has, and how many fit.
//
// It counts what is sent: Sent is the adapters' word on what a provider gets of each message. tiktoken-go's tables say which of five encodings a model of OpenAI
// reads: GPT-4o, o1 and later ones o200k_base, GPT-4 and GPT-3.5 cl100k_base. Every other model is counted by cl100k_base. That is an approximation (Claude's own
// counts are 20 to 30 % higher), which callers should call one, and which Ratio corrects with the figures of past replies.
//
// 4 tokens for each message, 10 for each tool call and 10 for the conversation are added, and for images and documents what the provider's published formula
// gives. Counting takes linear time for any text, and uses no network. The program contains the vocabularies of tiktoken-go's loader, and reads one when it first
// needs a count; Cache keeps counts, so that often none is needed. Nothing of tiktoken-go changes for other code in the program, unless it calls UseOfflineLoader.
//
// Read first: Encoding.Count, ForModel, Counter.Sizes.
package tokens
