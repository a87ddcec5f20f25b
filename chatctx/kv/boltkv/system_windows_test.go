package boltkv_test

import (
	"errors"
	"testing"
)

func mkfifo(string) error { return errors.ErrUnsupported }

func asNobody(t *testing.T) { t.Skip("rights are not like that here") }

// Processes cannot be stopped here; one that stays in its Update does as well.
func stop(*testing.T, *process) {}

func goOn(*testing.T, *process) {}
