<?php

declare(strict_types=1);

// The front script under php-fpm: everything begins and ends with the request.

require __DIR__ . '/bootstrap.php';

Percore\api(keeps: false)->handle($_SERVER)->send();
