<?php

declare(strict_types=1);

namespace Percore;

/** A whole answer: status, body and the headers that the contract names. */
final class Response
{
    public const JSON = 'application/json';
    public const TEXT = 'text/plain; charset=utf-8';

    public function __construct(
        public readonly int $status,
        public readonly string $body,
        public readonly string $type = self::JSON,
    ) {
    }

    public static function invalidToken(): self
    {
        return new self(401, '{"error":"invalid_token"}');
    }

    public static function invalidRequest(): self
    {
        return new self(400, '{"error":"invalid_request"}');
    }

    public static function notFound(): self
    {
        return new self(404, '{"error":"not_found"}');
    }

    public static function serverError(): self
    {
        return new self(500, '{"error":"server_error"}');
    }

    /** The answer to what is not HTTP, in the words of Go's net/http. */
    public static function malformed(): self
    {
        return new self(400, '400 Bad Request', self::TEXT);
    }

    /** Hands the answer to PHP's server interface. */
    public function send(): void
    {
        \http_response_code($this->status);
        \header('Content-Type: ' . $this->type);
        \header('Content-Length: ' . \strlen($this->body));
        if ($this->status === 401) {
            \header('WWW-Authenticate: Bearer error="invalid_token"');
        }
        echo $this->body;
    }
}
