package exchange

func detectChatGPT(h *head) bool {
	return h.any(func(v value) bool {
		if v.get("mapping").is(objectKind) {
			return true
		}
		for it := range v.get("conversations").items() {
			if it.get("mapping").is(objectKind) {
				return true
			}
		}
		return false
	})
}

// readChatGPT reads a ChatGPT data export: an array of conversations, one, or an object that holds the array.
func readChatGPT(r *reading) error {
	return r.eachItem("conversations", func(at place, v value) error { return nil })
}
