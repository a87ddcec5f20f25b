package chatctx
