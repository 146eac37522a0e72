<?php

declare(strict_types=1);

namespace Percore;

use Firebase\JWT\BeforeValidException;
use Firebase\JWT\JWT;
use Firebase\JWT\Key;

/** Verifies tokens with firebase/php-jwt. */
final class FirebaseVerifier implements TokenVerifier
{
    private readonly Key $key;

    public function __construct(\OpenSSLAsymmetricKey $key, private readonly Claims $claims)
    {
        $this->key = new Key($key, 'RS256');
    }

    public function verify(string $token, string $scope): ?Identity
    {
        // The library skips characters that are not base64url.
        $parts = \explode('.', $token);
        if (\count($parts) !== 3 || !Base64Url::isCanonical($parts[0]) || !Base64Url::isCanonical($parts[1]) || !Base64Url::isCanonical($parts[2])) {
            return null;
        }
        $header = new \stdClass();
        try {
            $claims = JWT::decode($token, $this->key, $header);
        } catch (BeforeValidException $early) {
            // The signature is good, and the library minds an iat in the future, which
            // the contract does not.
            $claims = $early->getPayload();
        } catch (\LogicException | \RuntimeException | \TypeError) {
            return null;
        }
        $headerText = Base64Url::decode($parts[0]);
        $text = Base64Url::decode($parts[1]);
        // The library makes strings of large integers, and a string may be a subject.
        if (\preg_match('/[0-9]{19}/', $headerText . $text) === 1) {
            $header = Json::object($headerText, Json::TOKEN_DEPTH);
            $claims = Json::object($text, Json::TOKEN_DEPTH);
        } elseif (!Json::isStrict($headerText) || !Json::isStrict($text)) {
            return null;
        }
        if (!$header instanceof \stdClass || $claims === null || !Claims::acceptsHeader($header, $headerText)) {
            return null;
        }

        return $this->claims->identity($claims, $scope);
    }
}
