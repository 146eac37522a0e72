<?php

declare(strict_types=1);

namespace Percore;

use Lcobucci\JWT\Exception;
use Lcobucci\JWT\Token\Parser;
use Lcobucci\JWT\Validation\Constraint\SignedWith;

/**
 * Verifies tokens with lcobucci/jwt: the library takes the token apart and checks
 * algorithm and signature. The rest is the contract's: the library would take
 * numeric strings for dates, for instance, and parse the key for every token.
 */
final class LcobucciVerifier implements TokenVerifier
{
    private readonly SignedWith $signature;

    public function __construct(\OpenSSLAsymmetricKey $key, private readonly Claims $claims)
    {
        $signer = new KeptKeySigner($key);
        $this->signature = new SignedWith($signer, $signer);
    }

    public function verify(string $token, string $scope): ?Identity
    {
        $decoder = new StrictDecoder();
        try {
            $this->signature->assert((new Parser($decoder))->parse($token));
        } catch (Exception | \TypeError) {
            return null;
        }

        return $this->claims->identity($decoder->claims(), $scope);
    }
}
