package gate

type installer struct{}

var claude, codex, gemini, copilot, opencode installer
