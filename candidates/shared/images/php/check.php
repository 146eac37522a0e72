<?php

// Run when an image is built: the PHP inside has what the candidates need and is
// set as the protocol says.

foreach (['json', 'openssl', 'pdo_pgsql', 'Zend OPcache'] as $extension) {
    if (!extension_loaded($extension)) {
        fwrite(STDERR, "the extension $extension is missing\n");
        exit(1);
    }
}
$settings = ['opcache.enable' => '1', 'opcache.enable_cli' => '1', 'opcache.validate_timestamps' => '0'];
if (ini_get('opcache.jit') !== false) { // false when it is not compiled in
    $settings['opcache.jit'] = 'disable';
}
foreach ($settings as $name => $value) {
    if (ini_get($name) !== $value) {
        fwrite(STDERR, "$name is " . var_export(ini_get($name), true) . ", not $value\n");
        exit(1);
    }
}
$wanted = $argv[1] === 'zts';
if ((bool) PHP_ZTS !== $wanted) {
    fwrite(STDERR, 'this PHP is ' . (PHP_ZTS ? '' : 'not ') . "thread-safe\n");
    exit(1);
}
if (!is_file('/app/php/bootstrap.php') || ini_get('expose_php') !== '') {
    fwrite(STDERR, "the application or its settings are not where they belong\n");
    exit(1);
}
// That opcache is on does not say that it keeps what it compiles.
foreach (glob('/app/php/src/*.php') as $file) {
    if (!opcache_compile_file($file) || !opcache_is_script_cached($file)) {
        fwrite(STDERR, "opcache does not keep $file\n");
        exit(1);
    }
}
