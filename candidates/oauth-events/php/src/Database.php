<?php

declare(strict_types=1);

namespace Percore;

/**
 * The events in PostgreSQL, by the fastest idiom that the process's lifetime allows.
 *
 * A worker keeps its connection and prepares each statement once. Under php-fpm
 * objects die with the request: the connection persists below PHP, and a statement
 * prepared on the server would cost a second round trip, so each query goes out with
 * its parameters in one.
 */
final class Database
{
    /**
     * All candidates send the same two statements. The database writes the time and
     * takes the payload out of the body's own text, so that no candidate's notion of a
     * number or a date shows in a row.
     */
    private const SELECT_EVENT = 'SELECT kind, payload::text, to_char(created_at AT TIME ZONE \'UTC\', \'YYYY-MM-DD"T"HH24:MI:SS.US"Z"\') FROM events WHERE id = ? AND subject = ?';
    private const INSERT_EVENT = 'INSERT INTO events (subject, kind, payload) VALUES (?, ?, ?::jsonb -> \'payload\') RETURNING id';

    private ?\PDO $connection = null;

    /** @var array<string, \PDOStatement> */
    private array $statements = [];

    /**
     * @param bool $keeps whether this object outlives a request
     */
    public function __construct(
        private readonly string $source,
        private readonly string $user,
        #[\SensitiveParameter] private readonly string $password,
        private readonly bool $keeps,
    ) {
    }

    /**
     * Reads one event of a subject.
     *
     * @return list<string>|null its kind, its payload as JSON and its time
     */
    public function event(string $id, string $subject): ?array
    {
        $row = $this->row(self::SELECT_EVENT, [$id, $subject]);

        return $row === false ? null : $row;
    }

    /**
     * Writes one event, whose payload is a member of the body, and returns its id, or
     * null when jsonb cannot hold it (SQLSTATE class 22).
     */
    public function addEvent(string $subject, string $kind, string $body): ?string
    {
        try {
            return (string) $this->row(self::INSERT_EVENT, [$subject, $kind, $body])[0];
        } catch (\PDOException $error) {
            if (\str_starts_with((string) $error->getCode(), '22')) {
                return null;
            }
            throw $error;
        }
    }

    /** Makes one round trip. */
    public function ping(): void
    {
        $this->row('SELECT 1', []);
    }

    /**
     * @param list<string> $parameters
     *
     * @return list<mixed>|false
     */
    private function row(string $sql, array $parameters): array|false
    {
        try {
            $statement = $this->statements[$sql] ?? $this->prepare($sql);
            $statement->execute($parameters);
            $row = $statement->fetch(\PDO::FETCH_NUM);
            $statement->closeCursor();

            return $row;
        } catch (\PDOException $error) {
            if (!\str_starts_with((string) $error->getCode(), '22')) {
                // The connection may be gone: the next request makes a new one.
                $this->statements = [];
                $this->connection = null;
            }
            throw $error;
        }
    }

    private function prepare(string $sql): \PDOStatement
    {
        $this->connection ??= new \PDO($this->source, $this->user, $this->password, [
            \PDO::ATTR_ERRMODE => \PDO::ERRMODE_EXCEPTION,
            \PDO::ATTR_EMULATE_PREPARES => false,
            \PDO::ATTR_PERSISTENT => !$this->keeps,
        ]);
        if ($this->keeps) {
            return $this->statements[$sql] = $this->connection->prepare($sql);
        }
        $oneTrip = \PHP_VERSION_ID >= 80400 ? \Pdo\Pgsql::ATTR_DISABLE_PREPARES : \PDO::PGSQL_ATTR_DISABLE_PREPARES;

        return $this->connection->prepare($sql, [$oneTrip => true]);
    }
}
