<?php

declare(strict_types=1);

namespace Percore;

/**
 * Reads JSON the way the contract wants it read by every candidate. PHP's reader
 * does most of it: RFC 8259, UTF-8, no half of a surrogate pair, the last of two members
 * with the same name wins. The rest is here.
 */
final class Json
{
    /** How many arrays and objects may be nested in a body, and in a part of a token. */
    public const BODY_DEPTH = 512;
    public const TOKEN_DEPTH = 511;

    /** The largest exponent, in either direction, of a number that will be stored. */
    private const MAX_EXPONENT = 308;

    /** Returns the object that a text holds, or null when it does not hold one. */
    public static function object(string $text, int $depth): ?\stdClass
    {
        // What PHP calls a depth is one more than the levels it lets pass.
        $value = \json_decode($text, false, $depth + 1);

        return $value instanceof \stdClass && self::isStrict($text) ? $value : null;
    }

    /**
     * The same for a text whose values PostgreSQL will store as jsonb. PostgreSQL
     * writes 1e131071 out in full, so that six bytes of a request would become 128 KiB
     * of every later answer: exponents are bounded.
     */
    public static function storable(string $text): ?\stdClass
    {
        $value = self::object($text, self::BODY_DEPTH);
        if ($value === null || \preg_match('/[0-9][eE][-+]?[0-9]{3}/', $text) === 0) {
            return $value;
        }
        if (\preg_match_all('/[0-9][eE][-+]?0*+([0-9]++)/', self::withoutStrings($text), $found) === false) {
            return null;
        }
        foreach ($found[1] as $exponent) {
            if (\strlen($exponent) > 3 || (int) $exponent > self::MAX_EXPONENT) {
                return null;
            }
        }

        return $value;
    }

    /**
     * Tells whether a text that json_decode accepts is free of the two things that it
     * accepts and the contract does not: U+0000 (neither text nor jsonb can hold it)
     * and literals in other letters than true, false and null.
     */
    public static function isStrict(string $text): bool
    {
        if (\str_contains($text, '\u0000') && \preg_match('/(?<!\\\\)(?:\\\\\\\\)*+\\\\u0000/', $text) !== 0) {
            return false;
        }
        // Strings may hold anything, so a hit here is only a reason to look closely.
        if (\preg_match('/[:\[,\s](?:[TFN]|t(?!rue)|f(?!alse)|n(?!ull))/', $text) === 0) {
            return true;
        }

        return \preg_match('/[TFN]|t(?!rue)|f(?!alse)|n(?!ull)/', \str_replace(['true', 'false', 'null'], '', self::withoutStrings($text))) === 0;
    }

    /** Tells whether a text holds a number that is too large for a double. */
    public static function hasInfinity(string $text): bool
    {
        if (\preg_match('/[0-9][eE]|[0-9]{309}/', $text) === 0) {
            return false;
        }
        \preg_match_all('/[0-9][0-9.eE+-]*+/', self::withoutStrings($text), $found);
        foreach ($found[0] as $number) {
            if (\is_infinite((float) $number)) {
                return true;
            }
        }

        return false;
    }

    private static function withoutStrings(string $text): string
    {
        // A pattern that fails leaves a text that no check accepts.
        return \preg_replace('/"(?:[^"\\\\]++|\\\\.)*+"/s', '""', $text) ?? 'T1e999';
    }
}
