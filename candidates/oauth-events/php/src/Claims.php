<?php

declare(strict_types=1);

namespace Percore;

/** The rules of the contract for a token's header and claims, whatever the library allows. */
final class Claims
{
    /** The last second of the year 9999: not every date library reads a later one. */
    private const LATEST = 253402300799;

    public function __construct(
        private readonly string $issuer,
        private readonly string $audience,
    ) {
    }

    /** Tells whether a header asks for nothing that is not understood. */
    public static function acceptsHeader(\stdClass $header, string $text): bool
    {
        return !\property_exists($header, 'crit')
            && (!\property_exists($header, 'kid') || \is_string($header->kid))
            && !Json::hasInfinity($text);
    }

    /** Returns the identity that a claims set gives for a scope, or null. */
    public function identity(\stdClass $claims, string $scope): ?Identity
    {
        $now = \time();
        $valid = ($claims->iss ?? null) === $this->issuer
            && $this->isForUs($claims->aud ?? null)
            && \is_string($claims->sub ?? null) && $claims->sub !== ''
            && self::isDate($claims->exp ?? null) && $now < $claims->exp
            && (!\property_exists($claims, 'nbf') || (self::isDate($claims->nbf) && \floor($claims->nbf) <= $now))
            && (!\property_exists($claims, 'iat') || self::isDate($claims->iat))
            && \is_string($claims->scope ?? null)
            && \in_array($scope, \explode(' ', $claims->scope), true);

        return $valid ? new Identity($claims->sub, $claims->scope) : null;
    }

    private function isForUs(mixed $audience): bool
    {
        if (!\is_array($audience)) {
            return $audience === $this->audience;
        }
        foreach ($audience as $one) {
            if (!\is_string($one)) {
                return false;
            }
        }

        return \in_array($this->audience, $audience, true);
    }

    private static function isDate(mixed $value): bool
    {
        return (\is_int($value) || \is_float($value)) && $value >= 0 && $value <= self::LATEST;
    }
}
