package fleet

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/claimbench/claimbench/internal/race"
)

// A starter is the barrier of a heat: when all contenders stand before a round, it says when that starts.
type starter struct {
	f *Fleet

	mu      sync.Mutex
	first   int64
	homes   []string // of the contenders, the ids of their hosts
	lead    int64
	arrived []uint64 // at each round, a bit for each contender
}

// begin is called before anybody is ordered into the heat.
func (s *starter) begin(first int64, rounds int, homes []string, lead int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.homes, s.lead = first, homes, lead
	s.arrived = make([]uint64, rounds+1)
}

// hear counts an arrival.
func (s *starter) hear(msg *nats.Msg) {
	var a arrival
	if err := decode(msg.Data, &a); err != nil {
		s.f.strays.add("arrivals", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.First != s.first || a.Round < 0 || a.Round >= len(s.arrived) || a.Who < 0 || a.Who >= len(s.homes) {
		return // of a heat that was given up
	}
	if s.homes[a.Who] != idIn(msg.Subject) {
		s.f.strays.add("arrivals", fmt.Errorf("a host speaks for contender %d, which is another's", a.Who))
		return
	}
	before := s.arrived[a.Round]
	s.arrived[a.Round] |= 1 << a.Who
	if s.arrived[a.Round] != before && bits.OnesCount64(s.arrived[a.Round]) == len(s.homes) {
		// Whoever does not hear it is missed by the order that it does not answer.
		_ = s.f.point.nc.Publish(prefix+s.f.session+starts, encode(start{First: s.first, Round: a.Round, At: race.Now() + s.lead}))
	}
}
