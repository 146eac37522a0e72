<?php

declare(strict_types=1);

// The front script of a FrankenPHP worker: key, connection and statements are made
// once and kept; a request leaves nothing behind.

require __DIR__ . '/bootstrap.php';

ignore_user_abort(true);

$api = Percore\api(keeps: true);
$answer = static function () use ($api): void {
    $api->handle($_SERVER)->send();
};
while (frankenphp_handle_request($answer)) {
}
