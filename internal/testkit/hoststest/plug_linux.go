package hoststest

// Unplug pulls this machine's own plug: it reaches none of the hosts any more,
// and they go on reaching each other.
func (l *Lab) Unplug() { l.plug("down") }

// Plug puts this machine's plug back.
func (l *Lab) Plug() { l.plug("up") }

func (l *Lab) plug(state string) {
	l.t.Helper()
	if err := command("ip", "-n", l.slot.hub(), "link", "set", "h0", state); err != nil {
		l.t.Errorf("hoststest: %v", err)
	}
}
