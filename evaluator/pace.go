package evaluator

import "time"

// leastPage is the smallest page that a tick which runs out of time falls back to.
const leastPage = 50

// pace decides how many exchanges a page holds. A page whose commit takes longer
// than the claim stands would be judged again and again, and never be committed,
// exactly when machine and databases have no time to waste. Therefore a tick that
// ran out of time halves the page, and one whose pages were quick doubles it, up
// to what the options say. One that is too large to be held is halved at once, down to
// a single exchange.
//
// Far behind the cursors a query reads several pages, which costs less in all. Where
// one of these fails, the source may have no room or no time for as much, and no more
// of them are made until nothing is owed.
type pace struct {
	size, most int
	// sparing says that no query reads more than a page.
	sparing bool
}

func newPace(most int) pace { return pace{size: most, most: most} }

// bulk returns how many exchanges a query may read where much is owed.
func (p *pace) bulk() int {
	if p.sparing {
		return p.size
	}
	return bulk * p.size
}

// ranOut tells that a tick did not come to its end within its claim.
func (p *pace) ranOut() { p.size = min(p.size, max(p.size/2, leastPage)) }

// tooMuch tells that a page cannot be held.
func (p *pace) tooMuch() { p.size = max(p.size/2, 1) }

// kept tells that a tick came to its end: how long it took, for how many pages,
// and how long it may go on reading.
func (p *pace) kept(took time.Duration, pages int, budget time.Duration) {
	if took/time.Duration(max(pages, 1)) < budget/4 {
		p.size = min(2*p.size, p.most)
	}
}
