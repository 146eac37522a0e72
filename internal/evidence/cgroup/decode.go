package cgroup

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// decode reads one line. A line just as guest sample writes it, which is nearly
// every line there is, takes a tenth of the time of the general decoder; every
// other line, and the judgement of what is wrong with it, is left to that.
func decode(line []byte, x *Sample) error {
	if d := (decoder{b: line}); d.sample(x) {
		return nil
	}
	*x = Sample{}
	return json.Unmarshal(line, x)
}

// decoder reads the one form of a line that guest sample writes. Its methods return
// false for anything else.
type decoder struct{ b []byte }

func (d *decoder) literal(s string) bool {
	if len(d.b) < len(s) || string(d.b[:len(s)]) != s {
		return false
	}
	d.b = d.b[len(s):]
	return true
}

// number reads a number that is not negative, after a literal.
func (d *decoder) number(before string, to *int64) bool {
	if !d.literal(before) {
		return false
	}
	i := 0
	var n uint64
	for ; i < len(d.b) && d.b[i] >= '0' && d.b[i] <= '9'; i++ {
		if i == 19 {
			return false
		}
		n = n*10 + uint64(d.b[i]-'0')
	}
	if i == 0 || i > 1 && d.b[0] == '0' || n > math.MaxInt64 {
		return false
	}
	d.b = d.b[i:]
	*to = int64(n)
	return true
}

// name reads a JSON string without escapes, after its opening quote.
func (d *decoder) name() ([]byte, bool) {
	i := bytes.IndexByte(d.b, '"')
	if i <= 0 {
		return nil, false
	}
	s := d.b[:i]
	for _, c := range s {
		if c <= ' ' || c >= 0x7f || c == '\\' {
			return nil, false
		}
	}
	d.b = d.b[i+1:]
	return s, true
}

func (d *decoder) sample(x *Sample) bool {
	var cpus int64
	if !d.number(`{"t":`, &x.T) || !d.number(`,"mono":`, &x.Mono) {
		return false
	}
	const slow = `,"slow_t":` // older samplers read everything for each line and lack it
	if bytes.HasPrefix(d.b, []byte(slow)) && !d.number(slow, &x.SlowT) {
		return false
	}
	if !d.number(`,"host":{"cpus":`, &cpus) ||
		!d.number(`,"total_us":`, &x.Host.TotalUS) || !d.number(`,"idle_us":`, &x.Host.IdleUS) ||
		!d.number(`,"steal_us":`, &x.Host.StealUS) || !d.literal(`,"per_cpu":[`) {
		return false
	}
	if cpus > 1<<16 {
		return false
	}
	x.Host.CPUs = int(cpus)
	x.Host.PerCPU = make([]CPU, 0, cpus)
	for !d.literal("]") {
		if len(x.Host.PerCPU) > 0 && !d.literal(",") {
			return false
		}
		var number int64
		var c CPU
		if !d.number(`{"cpu":`, &number) || number > math.MaxInt32 || !d.number(`,"busy_us":`, &c.BusyUS) || !d.number(`,"steal_us":`, &c.StealUS) {
			return false
		}
		const irq = `,"irq_us":` // older samplers lack it
		if bytes.HasPrefix(d.b, []byte(irq)) && !d.number(irq, &c.IRQUS) || !d.literal("}") {
			return false
		}
		c.CPU = int(number)
		x.Host.PerCPU = append(x.Host.PerCPU, c)
	}
	var whole, frac int64
	start := d.b
	if !d.number(`,"load1":`, &whole) || !d.literal(".") || len(d.b) < 3 || d.b[2] != '}' {
		return false
	}
	for _, c := range d.b[:2] {
		if c < '0' || c > '9' {
			return false
		}
		frac = frac*10 + int64(c-'0')
	}
	d.b = d.b[2:]
	if frac == 0 {
		x.Host.Load1 = float64(whole)
	} else {
		f, err := strconv.ParseFloat(string(start[len(`,"load1":`):len(start)-len(d.b)]), 64)
		if err != nil {
			return false
		}
		x.Host.Load1 = f
	}
	if !d.literal(`},"containers":{`) {
		return false
	}
	x.Containers = make(map[string]Container, 4)
	for !d.literal("}") {
		if len(x.Containers) > 0 && !d.literal(",") {
			return false
		}
		if !d.literal(`"`) {
			return false
		}
		name, ok := d.name()
		if !ok || !d.literal(":{") {
			return false
		}
		if _, twice := x.Containers[string(name)]; twice {
			return false
		}
		var c Container
		if !d.container(&c) {
			return false
		}
		x.Containers[string(name)] = c
	}
	return d.literal("}") && len(d.b) == 0
}

// container reads the counters up to and with the closing brace, in the order in
// which guest sample writes them; those that the kernel lacks are left out.
func (d *decoder) container(c *Container) bool {
	if d.literal(`"gone":true}`) {
		c.Gone = true
		return true
	}
	values := new([len(fields)]int64)
	next := 0
	for first := true; !d.literal("}"); first = false {
		if !first && !d.literal(",") {
			return false
		}
		if !d.literal(`"`) {
			return false
		}
		name, ok := d.name()
		if !ok {
			return false
		}
		for next < len(fields) && fields[next].name != string(name) {
			next++
		}
		if next == len(fields) || !d.number(":", &values[next]) {
			return false
		}
		*fields[next].at(c) = &values[next]
		next++
	}
	return true
}
