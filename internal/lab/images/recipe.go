package images

import (
	"fmt"
	"time"

	"github.com/percore/percore/internal/plan"
)

// The versions of the study and of what stands in for them. A new version is a
// change here and nowhere else.
const (
	GoVersion   = "1.27.1"
	OHAVersion  = "1.15.0"
	JWTVersion  = "7.1.1" // firebase/php-jwt; composer.json names it too
	DebianSuite = "trixie"
	// PHPSource is the version of Debian's source package php8.2 that the debian
	// flavour asks for first; when the mirror no longer has it, what it has is
	// taken, and percore-versions of the image says which.
	PHPSource = "8.2.32-1~deb12u1"

	officialBase       = "debian:trixie-slim"
	officialGolang     = "golang:1.27.1-trixie"
	officialPHP        = "php:8.5.10-fpm-trixie"
	officialFrankenPHP = "dunglas/frankenphp:1.12.7-php8.5.10-trixie"
	officialPostgres   = "postgres:17.11-trixie"
	officialRust       = "rust:1-trixie"
	officialComposer   = "composer:2"
)

// Method is how an image is made.
type Method string

const (
	Dockerfile Method = "dockerfile" // by the engine's builder
	Bootstrap  Method = "mmdebstrap" // a Debian root by mmdebstrap on the driver's machine, imported
	Cargo      Method = "cargo"      // a program by cargo on the driver's machine, imported
)

// Recipe says how one image is made.
type Recipe struct {
	Name       string
	Method     Method
	Dockerfile string            // path in the project; for Method Dockerfile
	Context    []Copy            // files of the build context
	From       map[string]Parent // build argument -> image it stands for
	Args       map[string]string // further build arguments
	Downloads  bool              // whether it downloads by TLS, and gets the driver's own certificate authorities
	Estimate   time.Duration     // on two cores with a near mirror
}

// Copy takes a file, or the files of a folder, into a build context.
type Copy struct {
	From   string   // path in the project
	To     string   // path in the context; "." for its root
	Only   []string // patterns of base names; all files when empty
	Except []string // patterns of base names left out
}

// Parent is an image that another stands on: one of percore's recipes or one
// that the engine finds in a registry.
type Parent struct {
	Recipe   string
	Official string
}

func recipe(name string) Parent   { return Parent{Recipe: name} }
func official(name string) Parent { return Parent{Official: name} }

// Recipes returns the recipes of a flavour, parents before children. Those that
// a run uses are go, php-fpm, frankenphp, postgres and tools: their recipes are
// the same in both flavours but for the images they stand on.
func Recipes(flavour plan.Flavour) ([]Recipe, error) {
	switch flavour {
	case plan.FlavourDebian:
		base := recipe("base")
		return append(standIns(), shared(stand{
			base: base, golang: recipe("golang"), postgres: recipe("postgres-base"), oha: recipe("oha"),
			php: recipe("php-fpm-base"), frankenphp: recipe("frankenphp-base"), jwt: recipe("php-jwt"), library: "lcobucci",
		})...), nil
	case plan.FlavourPublished:
		return append(adapters(), shared(stand{
			base: official(officialBase), golang: official(officialGolang), postgres: official(officialPostgres), oha: recipe("oha"),
			php: recipe("php-fpm-base"), frankenphp: recipe("frankenphp-base"), jwt: recipe("php-jwt"), library: "firebase",
		})...), nil
	}
	return nil, fmt.Errorf("the image flavour %q has no recipes: it is %s or %s", flavour, plan.FlavourPublished, plan.FlavourDebian)
}

// standIns are the images of the debian flavour that stand in for official ones.
func standIns() []Recipe {
	base := map[string]Parent{"BASE": recipe("base")}
	php := func(name, flags string) Recipe {
		return Recipe{
			Name: name, Method: Dockerfile, Dockerfile: "candidates/shared/images/debian/php.Dockerfile",
			From: base, Args: map[string]string{"PHP_SOURCE": PHPSource, "VARIANT_FLAGS": flags},
			Estimate: 150 * time.Second,
		}
	}
	return []Recipe{
		{Name: "base", Method: Bootstrap, Args: map[string]string{"suite": DebianSuite, "include": "ca-certificates", "variant": "minbase"}, Estimate: 30 * time.Second},
		{
			Name: "golang", Method: Dockerfile, Dockerfile: "candidates/shared/images/debian/golang.Dockerfile",
			From: base, Args: map[string]string{"GO_VERSION": GoVersion}, Downloads: true, Estimate: 90 * time.Second,
		},
		{Name: "postgres-base", Method: Dockerfile, Dockerfile: "candidates/shared/images/debian/postgres.Dockerfile", From: base, Estimate: 45 * time.Second},
		{Name: "oha", Method: Cargo, Args: map[string]string{"crate": "oha", "version": OHAVersion}, Estimate: 5 * time.Minute},
		php("php-fpm-base", "--enable-fpm --with-fpm-user=www-data --with-fpm-group=www-data"),
		php("php-zts-base", "--enable-embed=shared --enable-zts --disable-zend-signals --enable-zend-max-execution-timers"),
		{Name: "php-jwt", Method: Dockerfile, Dockerfile: "candidates/shared/images/debian/php-jwt.Dockerfile", From: base, Estimate: 10 * time.Second},
		{
			Name: "frankenphp-base", Method: Dockerfile, Dockerfile: "candidates/shared/images/debian/frankenphp.Dockerfile",
			Context:   goModule("candidates/oauth-events/frankenphp/_server", "server"),
			From:      map[string]Parent{"GOLANG": recipe("golang"), "PHP": recipe("php-zts-base")},
			Downloads: true, Estimate: 90 * time.Second,
		},
	}
}

// adapters are the images of the published flavour that add to official ones
// what the shared recipes expect.
func adapters() []Recipe {
	return []Recipe{
		{
			Name: "oha", Method: Dockerfile, Dockerfile: "candidates/shared/images/published/oha.Dockerfile",
			From: map[string]Parent{"RUST": official(officialRust), "BASE": official(officialBase)},
			Args: map[string]string{"OHA_VERSION": OHAVersion}, Downloads: true, Estimate: 6 * time.Minute,
		},
		{
			Name: "php-fpm-base", Method: Dockerfile, Dockerfile: "candidates/shared/images/published/php.Dockerfile",
			From: map[string]Parent{"PHP": official(officialPHP)}, Estimate: 90 * time.Second,
		},
		{
			Name: "php-jwt", Method: Dockerfile, Dockerfile: "candidates/shared/images/published/php-jwt.Dockerfile",
			Context:   []Copy{{From: "candidates/shared/images/published/composer.json", To: "composer.json"}},
			From:      map[string]Parent{"COMPOSER": official(officialComposer), "BASE": official(officialBase)},
			Args:      map[string]string{"JWT_VERSION": JWTVersion},
			Downloads: true, Estimate: 30 * time.Second,
		},
		{
			Name: "frankenphp-base", Method: Dockerfile, Dockerfile: "candidates/shared/images/published/frankenphp.Dockerfile",
			From: map[string]Parent{"FRANKENPHP": official(officialFrankenPHP)}, Estimate: 90 * time.Second,
		},
	}
}

// stand is what the shared recipes stand on in one flavour.
type stand struct {
	base, golang, postgres, oha, php, frankenphp, jwt Parent

	library string // the adapter that the API class takes
}

// shared are the images of a run, the same in both flavours.
func shared(on stand) []Recipe {
	return []Recipe{
		{
			Name: "postgres", Method: Dockerfile, Dockerfile: "candidates/shared/images/postgres/Dockerfile",
			Context:  []Copy{{From: "candidates/shared/images/postgres", To: "."}},
			From:     map[string]Parent{"POSTGRES": on.postgres},
			Estimate: 15 * time.Second,
		},
		{
			Name: "tools", Method: Dockerfile, Dockerfile: "candidates/shared/images/tools/Dockerfile",
			Context: []Copy{
				{From: "candidates/shared/images/tools", To: "."},
				goPackage("cmd/guest"), goPackage("internal/guest"),
			},
			From:     map[string]Parent{"GOLANG": on.golang, "OHA": on.oha, "BASE": on.base},
			Estimate: 45 * time.Second,
		},
		{
			Name: "go", Method: Dockerfile, Dockerfile: "candidates/oauth-events/go/Dockerfile",
			Context: append(goModule("candidates/oauth-events/go", "server"),
				Copy{From: "candidates/oauth-events/go/versions.sh", To: "versions.sh"}),
			From:      map[string]Parent{"GOLANG": on.golang, "BASE": on.base},
			Downloads: true, Estimate: 45 * time.Second,
		},
		{
			Name: "php-fpm", Method: Dockerfile, Dockerfile: "candidates/oauth-events/php-fpm/Dockerfile",
			Context: []Copy{
				{From: "candidates/shared/images/php", To: "."},
				{From: "candidates/oauth-events/php", To: "php", Only: []string{"*.php", "*.ini"}},
				{From: "candidates/oauth-events/php-fpm", To: "php-fpm", Except: []string{"Dockerfile"}},
			},
			From:     map[string]Parent{"PHP": on.php, "JWT": on.jwt},
			Args:     map[string]string{"JWT_LIBRARY": on.library},
			Estimate: 20 * time.Second,
		},
		{
			Name: "frankenphp", Method: Dockerfile, Dockerfile: "candidates/oauth-events/frankenphp/Dockerfile",
			Context: []Copy{
				{From: "candidates/shared/images/php", To: "."},
				{From: "candidates/oauth-events/php", To: "php", Only: []string{"*.php", "*.ini"}},
				{From: "candidates/oauth-events/frankenphp", To: "frankenphp", Only: []string{"*.sh", "Caddyfile"}},
			},
			From:     map[string]Parent{"FRANKENPHP": on.frankenphp, "JWT": on.jwt},
			Args:     map[string]string{"JWT_LIBRARY": on.library},
			Estimate: 15 * time.Second,
		},
	}
}

// goPackage takes the sources of one Go package, without its tests.
func goPackage(dir string) Copy {
	return Copy{From: dir, To: dir, Only: []string{"*.go"}, Except: []string{"*_test.go"}}
}

// goModule takes a Go module that stands inside percore's own. Its go.mod and
// go.sum have other names in the project, where they would cut the folder off
// from what percore embeds.
func goModule(dir, to string) []Copy {
	return []Copy{
		{From: dir, To: to, Only: []string{"*.go"}, Except: []string{"*_test.go"}},
		{From: dir + "/go.mod.image", To: to + "/go.mod"},
		{From: dir + "/go.sum.image", To: to + "/go.sum"},
	}
}
