<?php

declare(strict_types=1);

namespace Percore;

/**
 * Answers the requests of the suite's contract, the same class under php-fpm and
 * in a FrankenPHP worker. It keeps nothing from one request to the next. The order
 * of the checks is part of the contract: route, token and scope, then input.
 */
final class Api
{
    /** The largest request body that is read, in bytes. */
    public const MAX_BODY = 65536;

    private const SCOPE_READ = 'events:read';
    private const SCOPE_WRITE = 'events:write';
    private const EVENTS = '/events/';
    private const LARGEST_ID = '9223372036854775807';
    private const JSON = \JSON_THROW_ON_ERROR | \JSON_UNESCAPED_SLASHES | \JSON_UNESCAPED_UNICODE;

    public function __construct(
        private readonly TokenVerifier $verifier,
        private readonly Database $database,
    ) {
    }

    /**
     * Answers the request that PHP's own variables describe.
     *
     * @param array<string, mixed> $server as in $_SERVER
     */
    public function handle(array $server): Response
    {
        try {
            return $this->answer($server);
        } catch (\Throwable $error) {
            \error_log('could not answer: ' . $error::class . ': ' . $error->getMessage());

            return Response::serverError();
        }
    }

    /** @param array<string, mixed> $server */
    private function answer(array $server): Response
    {
        $method = $server['REQUEST_METHOD'] ?? '';
        $target = $server['REQUEST_URI'] ?? '';
        $authorization = $server['HTTP_AUTHORIZATION'] ?? '';

        // The target is judged as it was sent: no part of it is decoded or cleaned
        // first, so that one event has one address.
        $query = \strpos($target, '?');
        $path = $query === false ? $target : \substr($target, 0, $query);
        $get = $method === 'GET' || $method === 'HEAD';

        if ($get && $path === '/auth') {
            return $this->auth($authorization);
        }
        if ($get && \str_starts_with($path, self::EVENTS)) {
            $id = \substr($path, \strlen(self::EVENTS));
            if (self::isEventId($id) || !Target::isMalformed($method, $path)) {
                return $this->read($authorization, $id);
            }
        } elseif ($method === 'POST' && $path === '/events') {
            return $this->write($authorization, $server);
        } elseif ($get && $path === '/healthz') {
            $this->database->ping();

            return new Response(200, 'ok', Response::TEXT);
        }

        return Target::isMalformed($method, $path) ? Response::malformed() : Response::notFound();
    }

    private function auth(string $authorization): Response
    {
        $who = $this->identify($authorization, self::SCOPE_READ);
        if ($who === null) {
            return $this->refused($authorization);
        }

        return new Response(
            200,
            '{"sub":' . \json_encode($who->subject, self::JSON) . ',"scope":' . \json_encode($who->scope, self::JSON) . '}',
        );
    }

    private function read(string $authorization, string $id): Response
    {
        $who = $this->identify($authorization, self::SCOPE_READ);
        if ($who === null) {
            return $this->refused($authorization);
        }
        if (!self::isEventId($id)) {
            return Response::notFound();
        }
        $event = $this->database->event($id, $who->subject);
        if ($event === null) {
            return Response::notFound();
        }
        [$kind, $payload, $created] = $event;

        return new Response(
            200,
            '{"id":' . $id . ',"kind":' . \json_encode($kind, self::JSON) . ',"payload":' . $payload . ',"created_at":"' . $created . '"}',
        );
    }

    /** @param array<string, mixed> $server */
    private function write(string $authorization, array $server): Response
    {
        $who = $this->identify($authorization, self::SCOPE_WRITE);
        if ($who === null) {
            return $this->refused($authorization);
        }
        if ((float) ($server['CONTENT_LENGTH'] ?? 0) > self::MAX_BODY) {
            return Response::invalidRequest();
        }
        $body = (string) \file_get_contents('php://input', false, null, 0, self::MAX_BODY + 1);
        $kind = \strlen($body) > self::MAX_BODY ? null : self::kind($body);
        if ($kind === null) {
            return Response::invalidRequest();
        }
        $id = $this->database->addEvent($who->subject, $kind, $body);

        return $id === null ? Response::invalidRequest() : new Response(201, '{"id":' . $id . '}');
    }

    /** Validates the body of a write and returns its kind, or null. */
    private static function kind(string $body): ?string
    {
        $event = Json::storable($body);
        if ($event === null) {
            return null;
        }
        $kind = $event->kind ?? null;
        $valid = \is_string($kind) && $kind !== '' && ($event->payload ?? null) instanceof \stdClass;

        return $valid ? $kind : null;
    }

    /**
     * Verifies the bearer token of a request. The scheme is compared without regard
     * to case (RFC 9110, section 11.1). Two Authorization headers arrive here joined
     * by a comma, which no token holds.
     */
    private function identify(string $authorization, string $scope): ?Identity
    {
        $parts = \explode(' ', \trim($authorization, " \t"), 2);
        if (\strcasecmp($parts[0], 'bearer') !== 0) {
            return null;
        }

        return $this->verifier->verify(\ltrim($parts[1] ?? '', ' '), $scope);
    }

    /** A control character makes the header itself malformed (RFC 9110, section 5.5). */
    private function refused(string $authorization): Response
    {
        $malformed = \preg_match('/[\x00-\x08\x0A-\x1F\x7F]/', $authorization) === 1;

        return $malformed ? Response::malformed() : Response::invalidToken();
    }

    /** Tells whether a text is a canonical positive decimal number up to 2^63-1. */
    private static function isEventId(string $text): bool
    {
        $length = \strlen($text);
        if ($length === 0 || $length > 19 || $text[0] === '0' || \strspn($text, '0123456789') !== $length) {
            return false;
        }

        return $length < 19 || \strcmp($text, self::LARGEST_ID) <= 0;
    }
}
