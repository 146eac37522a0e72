<?php

declare(strict_types=1);

namespace Percore;

/** The seam between the API and a JWT library. */
interface TokenVerifier
{
    /**
     * Verifies one token, signature and claims, and that its scope holds the given
     * one. Returns null when anything is wrong with it. Nothing is cached between two
     * calls.
     */
    public function verify(string $token, string $scope): ?Identity;
}
