package images

import (
	"os"
	"testing"

	"github.com/percore/percore/internal/plan"
)

// What candidates/shared/images.yaml and the suite's images.yaml name: the
// versions of the study.
const (
	goVersion  = "1.27.1"
	ohaVersion = "1.15.0"
	jwtVersion = "7.1.1"

	officialBase       = "debian:trixie-slim"
	officialGolang     = "golang:1.27.1-trixie"
	officialPHP        = "php:8.5.10-fpm-trixie"
	officialFrankenPHP = "dunglas/frankenphp:1.12.7-php8.5.10-trixie"
	officialPostgres   = "postgres:17.11-trixie"
	officialRust       = "rust:1.90.0-trixie"
	officialComposer   = "composer:2.8.12"
)

// finals are the images of a run of the suite.
var finals = []string{"go", "php-fpm", "frankenphp", "postgres", "tools"}

// recipesOf reads the images of the suite.
func recipesOf(t testing.TB) *Recipes {
	t.Helper()
	r, err := Load(os.DirFS(project(t)), plan.DefaultSuite)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
