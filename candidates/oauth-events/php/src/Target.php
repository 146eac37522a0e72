<?php

declare(strict_types=1);

namespace Percore;

/** What a request line must look like before anything else is asked. */
final class Target
{
    /**
     * Finds the requests that nginx refuses although Go's net/http lets them pass: a
     * method with other characters than A-Z, '-' and '_', a target that does not begin
     * with a slash, an escaped NUL, and a path that climbs above the root.
     */
    public static function isMalformed(string $method, string $path): bool
    {
        if (\preg_match('/^[A-Z_-]+$/D', $method) !== 1 || $path === '' || $path[0] !== '/') {
            return true;
        }
        if (\preg_match('/%(?![0-9A-Fa-f]{2})|%00/', $path) === 1) {
            return true;
        }
        $depth = 0;
        foreach (\explode('/', \rawurldecode($path)) as $segment) {
            if ($segment === '..') {
                if (--$depth < 0) {
                    return true;
                }
            } elseif ($segment !== '' && $segment !== '.') {
                ++$depth;
            }
        }

        return false;
    }
}
