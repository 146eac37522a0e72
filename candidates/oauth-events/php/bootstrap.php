<?php

declare(strict_types=1);

namespace Percore;

/** Where the classes of each namespace are; the JWT library is the image's. */
const CLASSES = [
    'Percore\\' => __DIR__ . '/src/',
    'Firebase\\JWT\\' => '/app/jwt/firebase/php-jwt/src/',
    'Lcobucci\\JWT\\' => '/usr/share/php/Lcobucci/JWT/',
];

\spl_autoload_register(static function (string $class): void {
    foreach (CLASSES as $prefix => $folder) {
        if (\str_starts_with($class, $prefix)) {
            require $folder . \strtr(\substr($class, \strlen($prefix)), '\\', '/') . '.php';

            return;
        }
    }
});

/**
 * Builds the API from the environment.
 *
 * @param bool $keeps whether it will answer more than one request
 */
function api(bool $keeps): Api
{
    $key = \openssl_pkey_get_public((string) \getenv('PERCORE_PUBLIC_KEY'));
    if ($key === false) {
        throw new \RuntimeException('PERCORE_PUBLIC_KEY is not a public key: set it to one in PEM');
    }
    $claims = new Claims((string) \getenv('PERCORE_ISSUER'), (string) \getenv('PERCORE_AUDIENCE'));
    $library = (string) \getenv('PERCORE_JWT_LIBRARY');
    $verifier = match ($library) {
        'firebase' => new FirebaseVerifier($key, $claims),
        'lcobucci' => new LcobucciVerifier($key, $claims),
        default => throw new \RuntimeException('PERCORE_JWT_LIBRARY is "' . $library . '": set it to firebase or lcobucci'),
    };
    $source = \sprintf(
        'pgsql:host=%s;port=%s;dbname=%s;connect_timeout=3;sslmode=disable;gssencmode=disable',
        (string) \getenv('PERCORE_DATABASE_HOST'),
        (string) \getenv('PERCORE_DATABASE_PORT'),
        (string) \getenv('PERCORE_DATABASE_NAME'),
    );

    return new Api($verifier, new Database(
        $source,
        (string) \getenv('PERCORE_DATABASE_USER'),
        (string) \getenv('PERCORE_DATABASE_PASSWORD'),
        $keeps,
    ));
}
