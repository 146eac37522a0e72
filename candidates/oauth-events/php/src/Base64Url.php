<?php

declare(strict_types=1);

namespace Percore;

/** Base64url as compact JWS wants it: no padding, nothing to skip, one text for one value. */
final class Base64Url
{
    private const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

    public static function isCanonical(string $text): bool
    {
        $length = \strlen($text);
        if ($length === 0 || \strspn($text, self::ALPHABET) !== $length) {
            return false;
        }

        // The last digit of a text that does not end on a byte has bits to spare,
        // which must be zero.
        return match ($length % 4) {
            0 => true,
            1 => false,
            2 => \str_contains('AQgw', $text[$length - 1]),
            3 => \str_contains('AEIMQUYcgkosw048', $text[$length - 1]),
        };
    }

    /** Decodes a canonical text. */
    public static function decode(string $text): string
    {
        return (string) \base64_decode(\strtr($text, '-_', '+/'));
    }
}
