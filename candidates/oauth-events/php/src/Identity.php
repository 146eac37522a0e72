<?php

declare(strict_types=1);

namespace Percore;

/** What a verified token says. */
final class Identity
{
    public function __construct(
        public readonly string $subject,
        public readonly string $scope,
    ) {
    }
}
