<?php

declare(strict_types=1);

namespace Percore;

use Lcobucci\JWT\Signer;
use Lcobucci\JWT\Signer\CannotSignPayload;
use Lcobucci\JWT\Signer\Key;

/**
 * RS256 for lcobucci/jwt with a public key that is parsed once: the library's own
 * signer takes the key as text and parses it for every token.
 */
final class KeptKeySigner implements Signer, Key
{
    public function __construct(private readonly \OpenSSLAsymmetricKey $key)
    {
    }

    public function algorithmId(): string
    {
        return 'RS256';
    }

    public function sign(string $payload, Key $key): never
    {
        throw new CannotSignPayload('there is no private key on this side');
    }

    /** Ignores the key that it is handed: it is this object. */
    public function verify(string $expected, string $payload, Key $key): bool
    {
        return \openssl_verify($payload, $expected, $this->key, \OPENSSL_ALGO_SHA256) === 1;
    }

    public function contents(): string
    {
        return \openssl_pkey_get_details($this->key)['key'];
    }

    public function passphrase(): string
    {
        return '';
    }
}
