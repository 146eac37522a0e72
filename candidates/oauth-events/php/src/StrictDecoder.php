<?php

declare(strict_types=1);

namespace Percore;

use Lcobucci\JWT\Decoder;
use Lcobucci\JWT\Encoding\CannotDecodeContent;

/**
 * Decodes the parts of one token for lcobucci/jwt, by the contract's rules, and keeps
 * the claims as they were written: the library turns dates and audiences into
 * something else. The library decodes the header first, then the claims.
 */
final class StrictDecoder implements Decoder
{
    private ?\stdClass $header = null;
    private ?\stdClass $claims = null;

    public function claims(): \stdClass
    {
        return $this->claims ?? new \stdClass();
    }

    public function base64UrlDecode(string $data): string
    {
        if (!Base64Url::isCanonical($data)) {
            throw CannotDecodeContent::invalidBase64String();
        }

        return Base64Url::decode($data);
    }

    /** @return array<mixed> */
    public function jsonDecode(string $json): array
    {
        $object = Json::object($json, Json::TOKEN_DEPTH);
        if ($object === null || ($this->header === null && !Claims::acceptsHeader($object, $json))) {
            throw CannotDecodeContent::jsonIssues(new \JsonException('not acceptable'));
        }
        if ($this->header === null) {
            $this->header = $object;
        } else {
            $this->claims = $object;
        }
        $members = (array) $object;
        // Both are none of the contract's business, and the library minds them.
        unset($members['enc'], $members['']);

        return $members;
    }
}
