//go:build integration

//integration:apart

package report

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser starts a headless Chromium with a profile of its own. A machine
// without one fails the test, because a report that was never looked at is not
// tested.
func browser(t *testing.T) context.Context {
	t.Helper()
	binary := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			binary = found
			break
		}
	}
	if binary == "" {
		t.Fatal("there is no chromium in PATH; install the package chromium to test the report in a browser")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(binary), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WSURLReadTimeout(2 * time.Minute),
		chromedp.Flag("headless", "new"), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true),
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	ctx, expire := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(expire)
	return ctx
}

// complaints collects what a page says on its console and asks of the network.
type complaints struct {
	sync.Mutex
	list     []string
	requests int
}

func (c *complaints) add(format string, args ...any) {
	c.Lock()
	defer c.Unlock()
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

func (c *complaints) listen(ctx context.Context) error {
	return chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			c.add("console: %s", e.Type)
		case *runtime.EventExceptionThrown:
			c.add("exception: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			c.add("log: %s: %s", e.Entry.Level, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			c.Lock()
			c.requests++
			c.Unlock()
			if !strings.HasPrefix(e.Request.URL, "file://") && !strings.HasPrefix(e.Request.URL, "data:") {
				c.add("request: %s", e.Request.URL)
			}
		}
	})
}

// overlaps lists texts of plots that cover one another or leave their panel.
const overlaps = `(() => {
	const bad = [];
	for (const svg of document.querySelectorAll('.panel svg')) {
		const panel = svg.closest('figure').getBoundingClientRect();
		const texts = [...svg.querySelectorAll('text')].map(t => ({s: t.textContent, r: t.getBoundingClientRect()}));
		for (let i = 0; i < texts.length; i++) {
			const a = texts[i];
			if (a.r.left < panel.left - 1 || a.r.right > panel.right + 1) bad.push(a.s + ' leaves its figure');
			for (let j = i + 1; j < texts.length; j++) {
				const b = texts[j];
				const w = Math.min(a.r.right, b.r.right) - Math.max(a.r.left, b.r.left);
				const h = Math.min(a.r.bottom, b.r.bottom) - Math.max(a.r.top, b.r.top);
				if (w > 1.5 && h > 5) bad.push(svg.closest('figure').id + ' ' + svg.parentElement.querySelector('.panel-title').textContent + ': ' + a.s + ' covers ' + b.s);
			}
		}
	}
	return bad;
})()`

// wide lists what is wider than the page.
const wide = `(() => {
	const width = document.documentElement.clientWidth, bad = [];
	if (document.documentElement.scrollWidth > width) bad.push('the page is ' + document.documentElement.scrollWidth + ' wide');
	for (const e of document.querySelectorAll('body *')) {
		if (e.closest('.scroll') && !e.classList.contains('scroll') || e.closest('.skip') || e.closest('svg') && e.tagName != 'svg') continue;
		const r = e.getBoundingClientRect();
		if (r.width && r.right > width + 1) bad.push(e.tagName + ' ' + (e.id || e.className) + ' ends at ' + Math.round(r.right));
	}
	return bad;
})()`

func TestPageInBrowser(t *testing.T) {
	ctx := browser(t)
	all := documents(t)
	yes := true
	shots := os.Getenv("PERCORE_SCREENSHOTS") // a folder to look at them afterwards
	if shots == "" {
		shots = t.TempDir()
	}
	keep := func(t *testing.T, name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(shots, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var said complaints
	err := said.listen(ctx)
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{}); return err },
	} {
		if err == nil {
			err = enable()
		}
	}
	if err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	for _, name := range sortedKeys(all) {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := HTML(&b, all[name]); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "report.html")
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, width := range []int64{320, 360, 768, 1280} {
				for _, scheme := range []string{"light", "dark"} {
					_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
						Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
					if err == nil {
						err = chromedp.Do(ctx, chromedp.EmulateViewport(width, 800), chromedp.Navigate("file://"+file), chromedp.WaitVisible("#report"))
					}
					var tooWide, covered, opened []string
					var shot []byte
					if err == nil {
						tooWide, err = chromedp.Run(ctx, chromedp.Evaluate[[]string](wide))
					}
					if err == nil {
						covered, err = chromedp.Run(ctx, chromedp.Evaluate[[]string](overlaps))
					}
					if err == nil {
						shot, err = chromedp.Run(ctx, chromedp.FullScreenshot(100))
					}
					if err == nil {
						opened, err = chromedp.Run(ctx, chromedp.Evaluate[[]string](`document.querySelectorAll('details').forEach(d => d.open = true); `+wide))
					}
					if err != nil {
						t.Fatalf("%d pixels, %s: %v", width, scheme, err)
					}
					keep(t, fmt.Sprintf("%s-%d-%s.png", name, width, scheme), shot)
					for _, p := range append(append(tooWide, opened...), covered...) {
						t.Errorf("%d pixels, %s: %s", width, scheme, p)
					}
					picture, err := png.Decode(bytes.NewReader(shot))
					if err != nil {
						t.Fatal(err)
					}
					r, g, bl, _ := picture.At(2, 2).RGBA()
					if bright := (r + g + bl) / 3; (bright > 0x8000) != (scheme == "light") {
						t.Errorf("%d pixels, %s: the background has the brightness %d of 65535", width, scheme, bright)
					}
				}
			}
			err := chromedp.Do(ctx, chromedp.Navigate("file://"+file), chromedp.WaitVisible("#report"))
			var pdf []byte
			if err == nil {
				pdf, err = chromedp.Run(ctx, chromedp.PrintToPDF(func(p *page.PrintToPDFParams) { p.PreferCSSPageSize, p.PrintBackground = &yes, &yes }))
			}
			if err != nil || !bytes.HasPrefix(pdf, []byte("%PDF-")) {
				t.Errorf("printing: %v, %.10q", err, pdf)
			}
			keep(t, name+".pdf", pdf)
		})
	}
	said.Lock()
	list := said.list
	said.list = nil
	if said.requests < len(all) { // at least the pages themselves: the listener works
		t.Errorf("%d requests were seen", said.requests)
	}
	said.Unlock()
	for _, s := range list {
		t.Error(s)
	}

	// What is looked for above is found where it is.
	var b bytes.Buffer
	if err := HTML(&b, all["full"]); err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(b.String(), "</main>", `<div class="x" style="width:3000px">wide</div><img alt="" src="http://127.0.0.1:9/x.png"></main>`, 1)
	broken = strings.Replace(broken, "default-src 'none'", "default-src http:", 1)
	broken = strings.Replace(broken, "img-src data:;", "", 1)
	broken = regexp.MustCompile(`<text class="f fg" x="[0-9.]+" y="[0-9.]+"`).ReplaceAllString(broken, `<text class="f fg" x="9" y="20"`)
	file := filepath.Join(t.TempDir(), "broken.html")
	if err := os.WriteFile(file, []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(360, 800), chromedp.Navigate("file://"+file), chromedp.WaitVisible("#report")); err != nil {
		t.Fatal(err)
	}
	for what, script := range map[string]string{"too wide": wide, "covered": overlaps} {
		if found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](script)); err != nil || len(found) == 0 {
			t.Errorf("nothing is %s in a broken page: %v", what, err)
		}
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](`console.error("seen"), "said"`)); err != nil {
		t.Fatal(err)
	}
	said.Lock()
	defer said.Unlock()
	text := strings.Join(said.list, "\n")
	for _, want := range []string{"request: http://127.0.0.1:9/x.png", "console: error"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q of a broken page is not noticed:\n%s", want, text)
		}
	}
}
