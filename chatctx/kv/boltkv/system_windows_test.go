package boltkv_test

import (
	"errors"
	"testing"
)

func mkfifo(string) error { return errors.ErrUnsupported }

func asNobody(t *testing.T) { t.Skip("rights are not like that here") }
