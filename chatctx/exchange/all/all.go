// Package all is imported for its effect: it registers every format of this module that needs more than package exchange itself.
//
//	import _ "github.com/chatctx/chatctx/chatctx/exchange/all"
package all

import _ "github.com/chatctx/chatctx/chatctx/exchange/html" // the page, with a renderer of Markdown
