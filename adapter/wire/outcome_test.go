package wire

import (
	"testing"
)

// TestErrorsUnder200: the provider's words count, not the status 200.
func TestErrorsUnder200(t *testing.T) {
	for _, c := range []struct {
		body string
		want Kind
	}{
		{`{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: bad"}}`, Invalid},
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Overloaded},
		{`{"error":{"code":400,"message":"bad tool"}}`, Invalid},
		{`{"error":{"code":429,"message":"slow"}}`, RateLimit},
		{`{"error":{"code":"400","message":"bad tool"}}`, Invalid},
		{`{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`, Overloaded},
		{`{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}`, Invalid},
		{`{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}`, Authentication},
		{`{"error":{"code":"invalid_image_format","message":"no image"}}`, Invalid},
		{`{"error":{"code":"image_content_policy_violation","message":"no"}}`, Refused},
		{`{"error":{"code":"unsupported_image_media_type","message":"no"}}`, Invalid},
		{`{"error":{"code":"rate_limit_exceeded","message":"slow"}}`, RateLimit},
		{`{"error":{"type":"BadRequestError","message":"bad","code":400}}`, Invalid},
		{`{"error":"something"}`, Overloaded},
		{`{"error":"prompt is too long: 9 tokens"}`, TooLong},
	} {
		e := Classify("x", 200, nil, []byte(c.body))
		if e.Kind != c.want || e.Temporary() != (c.want == RateLimit || c.want == Overloaded) {
			t.Errorf("%s is %s, want %s", c.body, e.Kind, c.want)
		}
	}
	if e := Classify("x", 401, nil, []byte(`{"error":{"type":"invalid_request_error","message":"no key"}}`)); e.Kind != Authentication {
		t.Errorf("a 401 is %s", e.Kind)
	}
}
