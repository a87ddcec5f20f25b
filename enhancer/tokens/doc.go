// Package tokens says how large a draft is for a model: how many tokens it has, and how many fit.
//
// It counts what is sent: Sent is the adapters' word on what a provider gets of each message. GPT-4o, o1 and later models of OpenAI read o200k_base, GPT-4 and
// GPT-3.5 cl100k_base. Every other model is counted by cl100k_base. That is an approximation (Claude's own counts are 20 to 30 % higher), which callers should
// call one, and which Ratio corrects with the figures of past replies.
//
// 4 tokens for each message, 10 for each tool call and 10 for the conversation are added, and for images and documents what the provider's published formula
// gives. Counting takes linear time for any text. The program contains the vocabularies, and reads one when it first needs a count; Cache keeps counts, so that
// often none is needed.
//
// Read first: Encoding.Count, ForModel, Counter.Sizes.
package tokens
