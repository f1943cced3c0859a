package explore

// EvaluationGuards returns the evaluation without each of its guards, within bounds that suffice to
// break a promise.
func EvaluationGuards() []*Evaluation {
	var list []*Evaluation
	for _, guard := range []string{
		"revision", "token", "memory", "unique", "derived-id", "atomic", "mark", "look-back", "same-server", "wait", "pause", "looks",
	} {
		list = append(list, &Evaluation{Starts: []int{0}, Until: 3, LookBack: 1, Failovers: 1, Replicas: 2, Without: guard})
	}
	// These guards concern exchanges of one instant, and an exchange that is judged again together
	// with another.
	for _, guard := range []string{"position", "inserted-only"} {
		list = append(list, &Evaluation{Starts: []int{0, 0}, Until: 3, LookBack: 1, Failovers: 1, Replicas: 2, Without: guard})
	}
	return list
}

// DeliveryGuards returns the delivery without each of its guards.
func DeliveryGuards() []*Delivery {
	var list []*Delivery
	for _, guard := range []string{
		"claim-exclusive", "claim-begins", "fresh-token", "settle-token", "unknown-recorded", "late-success", "derived-id",
	} {
		list = append(list, &Delivery{Limit: 2, Attempts: 3, Failovers: 1, Without: guard})
	}
	return list
}
