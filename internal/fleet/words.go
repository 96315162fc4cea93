package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/claimbench/claimbench/internal/race"
)

// Words are kept once on each host and once here. What one side changed is sent to the others, as patches: contender,
// index of the first word, number of words, and the words.

const patchHead = 12

// changes appends a patch for each run of words that differ from what the other side has, and notes that it has them
// now. Runs that are close together are one. The words may be written meanwhile: each is read once.
func changes(patches []byte, who int, words, sent []uint64) []byte {
	const close = 4
	for i := 0; i < len(words); i++ {
		if atomic.LoadUint64(&words[i]) == sent[i] {
			continue
		}
		head := len(patches)
		patches = append(patches, make([]byte, patchHead)...)
		first, last := i, i
		for k := i; k < len(words) && k <= last+close; k++ {
			w := atomic.LoadUint64(&words[k])
			if w != sent[k] {
				last = k
			}
			patches = binary.LittleEndian.AppendUint64(patches, w)
			sent[k] = w
			i = k
		}
		binary.LittleEndian.PutUint32(patches[head:], uint32(who))
		binary.LittleEndian.PutUint32(patches[head+4:], uint32(first))
		binary.LittleEndian.PutUint32(patches[head+8:], uint32(i-first+1))
	}
	return patches
}

// patched calls set for each word of the patches.
func patched(patches []byte, set func(who, i int, w uint64)) error {
	for len(patches) > 0 {
		if len(patches) < patchHead {
			return errors.New("a patch of words is cut short")
		}
		who, first := binary.LittleEndian.Uint32(patches), binary.LittleEndian.Uint32(patches[4:])
		n := binary.LittleEndian.Uint32(patches[8:])
		patches = patches[patchHead:]
		if who >= race.MaxContenders || first >= race.Words || n > race.Words-first || int(n)*8 > len(patches) {
			return fmt.Errorf("a patch of %d words at %d of contender %d", n, first, who)
		}
		for k := range int(n) {
			set(int(who), int(first)+k, binary.LittleEndian.Uint64(patches[8*k:]))
		}
		patches = patches[8*n:]
	}
	return nil
}

// words are those of all contenders, here. What was written here goes to all hosts before the next order; what a
// contender wrote comes back with its answers, and goes to the others.
type words struct {
	publish func(news)

	mu   sync.Mutex
	sent uint64 // news so far
	here [race.MaxContenders][]uint64
	told [race.MaxContenders][]uint64 // as the hosts have them
}

// of is made when it is first asked for. From then on it is looked at for changes.
func (w *words) of(i int) []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.here[i] == nil {
		w.here[i], w.told[i] = make([]uint64, race.Words), make([]uint64, race.Words)
	}
	return w.here[i]
}

// forget is for new contenders, all of whose words are 0.
func (w *words) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.here {
		clear(w.here[i])
		clear(w.told[i])
	}
}

func (w *words) number() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// send sends what was written here since the last time.
func (w *words) send() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.here {
		if w.here[i] == nil {
			continue
		}
		if patches := changes(nil, i, w.here[i], w.told[i]); len(patches) > 0 {
			w.sent++
			w.publish(news{Number: w.sent, Words: patches})
		}
	}
}

// take notes what a contender wrote, and passes it on.
func (w *words) take(from int, patches []byte) error {
	if len(patches) == 0 {
		return nil
	}
	others := false
	err := patched(patches, func(who, _ int, _ uint64) { others = others || who != from })
	if err == nil && others {
		err = fmt.Errorf("contender %d answers for another", from)
	}
	if err != nil {
		return err
	}
	here := w.of(from)
	w.mu.Lock()
	defer w.mu.Unlock()
	err = patched(patches, func(_, i int, word uint64) {
		atomic.StoreUint64(&here[i], word)
		w.told[from][i] = word
	})
	if err != nil {
		return err
	}
	w.sent++
	w.publish(news{Number: w.sent, Echo: true, Words: patches})
	return nil
}
