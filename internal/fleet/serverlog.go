package fleet

import (
	"fmt"
	"strings"
	"sync"
)

// A serverLog passes on what a person should know of the embedded server, each kind of complaint once: who scans ports
// or tries tokens must not fill the screen.
type serverLog struct {
	log  func(string)
	mu   sync.Mutex
	seen map[string]int
}

func newServerLog(log func(string)) *serverLog { return &serverLog{log: log, seen: map[string]int{}} }

// complaints are the parts of the server's messages that matter here, and what they mean.
var complaints = []struct{ part, means string }{
	{"authentication error", "somebody without the right token was turned away"},
	{"Authentication Timeout", "somebody connected and never showed a token"},
	{"Parser Error", "somebody who does not speak NATS was turned away"},
	{"TLS handshake error", "a TLS handshake failed"},
	{"Maximum payload", "an oversized message was turned away"},
	{"Permissions Violation", "a host asked for what it may not"},
	{"Publish Violation", "a host sent what it may not"},
	{"Subscription Violation", "a host listened to what it may not"},
	{"slow consumer", "a host does not keep up"},
}

func (l *serverLog) say(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	for _, c := range complaints {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(c.part)) {
			continue
		}
		l.mu.Lock()
		l.seen[c.part]++
		first := l.seen[c.part] == 1
		l.mu.Unlock()
		if first {
			l.log(c.means + " (said once): " + strings.ReplaceAll(fmt.Sprintf("%.160s", text), "\n", " "))
		}
		return
	}
}

func (l *serverLog) Noticef(string, ...any)         {}
func (l *serverLog) Debugf(string, ...any)          {}
func (l *serverLog) Tracef(string, ...any)          {}
func (l *serverLog) Warnf(format string, v ...any)  { l.say(format, v...) }
func (l *serverLog) Errorf(format string, v ...any) { l.say(format, v...) }
func (l *serverLog) Fatalf(format string, v ...any) { l.log(fmt.Sprintf(format, v...)) }
