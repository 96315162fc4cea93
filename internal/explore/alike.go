package explore

// alike says that contenders differ in nothing but their names: in what they
// write, in what their clocks read, and in what they call private. Whoever
// reclaims goes through private names in their order, and a listing's newest
// name is found by who made it.
func (sc Scenario) alike() bool {
	switch sc.Weakness {
	case ClockSkew, FlockLocal, StaleReaddir:
		return false
	default:
		return !sc.Unlike && !sc.Fail && !sc.Apart && !sc.Reclaim
	}
}

// inTurn says that a contender may do a step. Where contenders are alike, B may
// do its first only after A has done its own, and C after B. No violation is
// lost: exchanging the names of contenders turns any schedule into one in which
// they begin in this order, and a violation into one of the same kind.
func (x *explorer) inTurn(s *state, who int) bool {
	if x.plain || who == 0 || who >= before || s.begun(who) || !x.sc.alike() {
		return true
	}
	return s.begun(who - 1)
}

// begun says that a contender has done a step, or has died before its first.
func (s *state) begun(who int) bool {
	a := &s.actors[who]
	return a.life != alive || a.at != start || s.fs.half[who]
}
