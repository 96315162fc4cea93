package lab

import (
	"strings"
	"testing"
)

func TestTheTextFormOfAFaultParsesBack(t *testing.T) {
	for _, text := range []string{"latency 20ms", "loss 2%", "restart 1s every 20s", "cut 5s every 30s", "lost-reply 5s every 15s", "full 500ms every 3s", "reboot 5s every 2m0s", "death 1m0s"} {
		f, err := parseFault(text)
		if err != nil || f.String() != text {
			t.Errorf("%s: %s, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "latency", "latency 0s", "latency 20", "latency 1s every 2s", "loss 2", "loss 0%", "loss 101%", "restart 1s", "cut 5s every 5s", "cut 5s often 9s", "full 1s", "fire 1s", "reboot 5s", "death 5s every 9s"} {
		if f, err := parseFault(text); err == nil || !strings.Contains(err.Error(), faultForms) {
			t.Errorf("%q: %s, %v", text, f, err)
		}
	}
}
