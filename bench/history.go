package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// A call is one operation of a history: a try of a key, or the record that it is done.
type call struct {
	key  int
	done bool
}

// A reply is what it answered. unknown is for one that did not come back: it may have happened or not.
type reply struct {
	outcome    string
	generation uint64
	unknown    bool
}

// A claimState is a key as the sequential model has it.
type claimState struct {
	taken      bool
	done       bool
	generation uint64
}

// model is the claim of one key, without time: nothing expires. Whoever wins finds the key neither taken nor done, with a
// generation higher than any before; who is refused finds it taken or done; who hears that it is done finds it so.
var model = porcupine.Model{
	Partition: byKey,
	Init:      func() any { return claimState{} },
	Step: func(state, in, out any) (bool, any) {
		return stepOf(state.(claimState), in.(call), out.(reply))
	},
	DescribeOperation: describe,
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	keys := map[int][]porcupine.Operation{}
	for _, op := range history {
		k := op.Input.(call).key
		keys[k] = append(keys[k], op)
	}
	var all [][]porcupine.Operation
	for _, ops := range keys {
		all = append(all, ops)
	}
	slices.SortFunc(all, func(a, b []porcupine.Operation) int { return cmp.Compare(a[0].Input.(call).key, b[0].Input.(call).key) })
	return all
}

func stepOf(s claimState, in call, out reply) (bool, any) {
	free := !s.taken && !s.done
	switch {
	case in.done && out.unknown && !s.taken:
		return true, s
	case in.done:
		return s.taken, claimState{done: true, generation: s.generation}
	case out.unknown && free:
		return true, claimState{taken: true, generation: s.generation}
	case out.unknown:
		return true, s
	case out.outcome == outcomes[outcomeWon]:
		return free && (out.generation == 0 || out.generation > s.generation), claimState{taken: true, generation: out.generation}
	case out.outcome == outcomes[outcomeHeld]:
		return !free, s
	default:
		return s.done, s
	}
}

func describe(in, out any) string {
	c, r := in.(call), out.(reply)
	switch {
	case c.done:
		return fmt.Sprintf("done %d", c.key)
	case r.generation > 0:
		return fmt.Sprintf("claim %d: %s, generation %d", c.key, r.outcome, r.generation)
	default:
		return fmt.Sprintf("claim %d: %s", c.key, r.outcome)
	}
}

// history is what the contenders recorded, as calls and replies. What is not known of a clock makes a call longer: an
// order of two calls that the clocks could explain proves nothing.
func history(all []attempted) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(a *attempted, in call, invoke int64, out reply, back int64) {
		if back == 0 {
			back, out.unknown = forever, true
		}
		ops = append(ops, porcupine.Operation{ClientId: a.Contender, Input: in, Call: invoke - a.unsure, Output: out, Return: back + a.unsure})
	}
	for i := range all {
		a := &all[i]
		if a.tries > 1 {
			add(a, call{key: a.Key}, a.firstInvoke, reply{outcome: outcomes[outcomeHeld]}, a.firstReturn)
		}
		add(a, call{key: a.Key}, a.Invoke, reply{outcome: a.Outcome, generation: a.Generation}, a.Return)
		if a.Ended != 0 {
			add(a, call{key: a.Key, done: true}, a.Ended, reply{}, a.Done)
		}
	}
	return ops
}

const forever = int64(1) << 62

// linearizable checks the history of a trial in which nothing expires. A violation comes with a drawing of it, as HTML.
func linearizable(all []attempted) (bool, []byte) {
	verdict, info := porcupine.CheckOperationsVerbose(model, history(all), 2*time.Second)
	if verdict != porcupine.Illegal {
		return true, nil
	}
	var html bytes.Buffer
	if err := porcupine.Visualize(model, info, &html); err != nil {
		return false, nil
	}
	return false, html.Bytes()
}
