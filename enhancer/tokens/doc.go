// Package tokens says how large a draft is for a model: how many tokens, of how many that fit.
//
// What is counted is what is sent: Sent has the adapters' word on what a provider gets of each message. GPT-4o, o1 and
// what OpenAI made later read o200k_base, GPT-4 and GPT-3.5 cl100k_base; every other model is counted by cl100k_base, which is an approximation
// (Claude's own counts are 20 to 30 % higher) that callers name as one, and that Ratio, from the figures of past replies, corrects.
//
// To the text come 4 tokens a message, 10 a tool call and 10 a conversation, and for images and documents what the provider's published
// formula gives. Counting is linear in the length of the text, whatever it holds. A vocabulary is part of the program and is read when a count is first
// missing; Cache keeps counts so that it often is not.
//
// Read first: Encoding.Count, ForModel, Counter.Sizes.
package tokens
