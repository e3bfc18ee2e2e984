"""Every constant of the product, with the reason for its value.

Sizes are bytes, times are seconds, unless the name says otherwise.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# --- Streams (contract rule 1) ---
BATCH_START_ITEMS: Final = 10  # small, so that the first response leaves at once
BATCH_TARGET_BYTES: Final = 64 * KIB  # the knee of items per second (practice §3)
BATCH_MAX_BYTES: Final = MIB  # a quarter of the default receive limit of clients
LARGE_BLOCK_BYTES: Final = 4 * MIB  # of memory, above every usual response: given back at once
BATCH_QUICK_SECONDS: Final = 0.05  # filled within it, the next response may be larger
BATCH_SHORT_ITEMS: Final = 64  # a limit up to this may be answered by a single response
BATCH_AT_HAND_SECONDS: Final = 0.001  # items that come faster need not leave before the rest
BATCH_MAX_ITEMS: Final = 512  # bounds the work between two cancellation checks
SUMMARY_CACHE_BYTES: Final = 8 * MIB  # some 10,000 summaries as they are sent

# --- Budgets (contract rule 5) ---
LIVE_STREAMS: Final = 256  # 50 KiB each, measured (techniques §4)
FINITE_STREAMS: Final = 32
UNARY_CALLS: Final = 32
REFLECTION_STREAMS: Final = 8  # a tool keeps one open for as long as it runs
REFUSAL_WORKERS: Final = 16  # health and refusals never wait behind a full budget
MAX_CONCURRENT_STREAMS: Final = 1024  # above all budgets: clients queue silently at it
UNREAD_CALLS: Final = 1024  # calls whose request is still on its way, all together
BUSY_RETRY_SECONDS: Final = 0.25
UNAVAILABLE_RETRY_SECONDS: Final = 1.0
UNREAD_SECONDS: Final = 60.0  # a call without a request for this long is dropped
GUARD_INTERVAL_SECONDS: Final = 0.5  # how late the ends of waiting calls may be
HEALTH_STALL_SECONDS: Final = 5.0  # a status is two bytes; nobody takes them that slowly
HEALTH_WATCHES: Final = 1024  # 20 KiB each, measured, and open to everybody
STALL_SECONDS: Final = 60.0  # a reader that takes nothing for this long is cut off
GIVE_WAY_SECONDS: Final = 0.05  # so long after a unary call streams still rest for the next one
GIVE_WAY_FACTOR: Final = 3.0  # of a stream's work, and for each stream: a third of the time is left
GIVE_WAY_AFTER_SECONDS: Final = 0.0003  # of CPU time, a full response: short lists never rest
GIVE_WAY_WITHIN_SECONDS: Final = 0.001  # of CPU time within work: how long a call waits for it
GIVE_WAY_MAX_SECONDS: Final = 0.25  # one rest; scans work long between two responses
UNARY_DEADLINE_SECONDS: Final = 60.0  # for a unary call that brings none
STREAM_IDLE_SECONDS: Final = 60.0  # work of a finite stream without a response
HEARTBEAT_SECONDS: Final = 15.0  # a live stream's proof of life
PROGRESS_SECONDS: Final = 0.5  # a long scan says how far it has come

# --- Transport ---
MAX_RECEIVE_BYTES: Final = 34 * MIB  # a 32 MiB message and its envelope
CLIENT_RECEIVE_BYTES: Final = 36 * MIB  # what clients of the Store should allow
MAX_SOCKET_PATH_BYTES: Final = 107  # sun_path less its NUL
KEEPALIVE_SECONDS: Final = 60  # finds dead peers long before the 2 h default
KEEPALIVE_TIMEOUT_SECONDS: Final = 20
MIN_CLIENT_PING_SECONDS: Final = 10  # Go clients may ping this often without GOAWAY
RECONNECT_FIRST_MS: Final = 100  # a restarted server is found at once, not after 1 s
RECONNECT_MOST_MS: Final = 2000  # a person who waits for it sees no longer gap
HANDSHAKE_SECONDS: Final = 10.0  # who says nothing holds a file descriptor; 120 s by default
DRAIN_SECONDS: Final = 10.0  # running calls may finish within it after SIGTERM

# --- Locks ---
LOCK_WAIT_SECONDS: Final = 0.3  # above a fork and exec on a busy machine; nobody notices it
LOCK_RETRY_SECONDS: Final = 0.01

# --- Credentials ---
TOKEN_BYTES: Final = 32  # of randomness in a token that we make
TOKEN_MIN_CHARACTERS: Final = 22  # 128 bits in base64: not to be guessed
TOKEN_FILE_BYTES: Final = 64 * KIB  # hundreds of tokens; read whole at each change
TOKEN_EDIT_WAIT_SECONDS: Final = 5.0  # for another edit, which takes milliseconds
CERTIFICATE_FILE_BYTES: Final = MIB  # every public root fits

# --- Metrics ---
TELEMETRY_FLUSH_SECONDS: Final = 2.0  # a dead collector must not hold up the exit
METRICS_POLL_SECONDS: Final = 0.1  # http.server notices within it that it must end
METRICS_REQUEST_SECONDS: Final = 5.0  # from the first byte of a scrape to the last
METRICS_CONNECTIONS: Final = 16  # scrapers are few; one more than these cuts the oldest

# --- flue-grpc doctor ---
DOCTOR_OPEN_FILES: Final = 1024  # a socket per call, a file per transcript read, SQLite
DOCTOR_FREE_BYTES: Final = 256 * MIB  # a large batch, its log and an index that is rebuilt
DOCTOR_CERTIFICATE_DAYS: Final = 14  # time to renew a certificate by hand
DOCTOR_HEALTH_SECONDS: Final = 2.0  # a server that runs answers at once
DOCTOR_CHECK_SECONDS: Final = 2.0  # some hundred MB; a person waits for the report

# --- Errors (contract rule 6) ---
METADATA_VALUE_BYTES: Final = 200
STATUS_BYTES: Final = 4 * KIB  # larger trailers are lost on the way
STATUS_MESSAGE_BYTES: Final = KIB
PAGE_TOKEN_BYTES: Final = 4 * KIB  # longer ones are not ours

# --- Requests ---
SESSION_ID_CODE_POINTS: Final = 128
REQUEST_ID_CODE_POINTS: Final = 64
REQUEST_ID_HOURS: Final = 24  # at least: only time in which the Store is open counts
BATCH_MESSAGES: Final = 1000
QUERY_BYTES: Final = 8 * KIB
RANKED_TERMS: Final = 64
INDEXED_TOKENS: Final = 64  # of a query; the rest is verified in the text (behaviour A3.2)
INDEXED_PHRASE_TOKENS: Final = 16  # repeated CJK phrases cost gigabytes otherwise
PIECE_CODE_POINTS: Final = 16 * KIB  # of a text, some milliseconds: other threads wait for it
MARKS_IN_A_ROW: Final = 30  # stream-safe text (UAX #15): ordering n of them takes n² steps
TIE_TOLERANCE: Final = 0.20  # behaviour A3.4

# --- Store ---
MESSAGE_BYTES: Final = 32 * MIB
TOOL_CALLS: Final = 1_000_000  # of one message; empty ones take 14 times their size as a row
TITLE_BYTES: Final = MIB  # with a match of 32 MiB and its window it stays below 36 MiB
MEMORY_CONTENT_BYTES: Final = MIB
SCOPE_BYTES: Final = 4 * KIB  # a scope is a workspace path, and Linux has none over 4 KiB
MANY_SCOPES: Final = 1000  # of more in one request those without entries are left out first
STORE_SEARCH_DEFAULT: Final = 10
STORE_SEARCH_MAX: Final = 1000
RECENT_MEMORY_DEFAULT: Final = 8
RECENT_MEMORY_MAX: Final = 1000
WINDOW_DEFAULT: Final = 3  # messages on each side of a match
WINDOW_MAX: Final = 20
WINDOW_TEXT_BYTES: Final = 16 * KIB  # content and arguments in a window
BUSY_TIMEOUT_MS: Final = 5000
GROUP_COMMIT_MAX: Final = 128  # operations in one transaction
SQL_PROGRESS_STEPS: Final = 1000  # cancellation is noticed within some ms, at no cost
READ_BATCH_ROWS: Final = 256  # rows of one bounded read transaction
READ_BATCH_BYTES: Final = MIB  # a batch of large messages ends here, at one at least
READERS_MAX: Final = 40  # connections: more than finite streams, and few file descriptors
READERS_WAIT_SECONDS: Final = 0.05  # for one of them, between two looks at the call
READERS_IDLE_MAX: Final = 8  # connections kept open between reads, 2 MiB of cache each
CHECKPOINT_PAGES: Final = 1000  # of the WAL, SQLite's own default
CHECKPOINT_FORCE_PAGES: Final = 16_000  # 64 MiB: readers are waited for, briefly
CHECKPOINT_WAIT_MS: Final = 500  # above any bounded read transaction
CHECKPOINT_IDLE_SECONDS: Final = 1.0  # the writer tidies up when nothing came for this long
JOURNAL_BYTES: Final = 64 * MIB  # a longer WAL is cut back after its checkpoint
CLOCK_AHEAD_HOURS: Final = 24  # imported times further ahead are mistakes, or their clock was wrong
REQUEST_PURGE_ROWS: Final = 16  # outdated request ids removed with each new one
WINDOW_MESSAGE_BYTES: Final = 64 * KIB  # of a window message on the wire; 41 of them stay small
WINDOW_CALL_BYTES: Final = 64  # of those, for a tool call beside its texts: 1,024 of them at most
WINDOW_CALLS_BYTES: Final = 512 * KIB  # of their JSON: 64 KiB of texts escaped, and the members
INDEX_HASH_BYTES: Final = 8 * MIB  # for refilling a search index (techniques §2)
BACKUP_PAGES: Final = 1024  # copied between two looks at the progress
REFUSAL_BYTES: Final = KIB  # of what import says of one line, which may quote the line
EXPORT_SPOOL_BYTES: Final = 16 * MIB  # of a session in memory until it was read whole
EXPORT_PART_BYTES: Final = MIB  # written at once
IMPORT_LINE_BYTES: Final = 8 * MESSAGE_BYTES  # JSON escapes take up to six times the text

# --- AgentIndex (behaviour B1) ---
PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 200
PAGE_FILE_BYTES: Final = 2 * MIB
PAGE_TEXT_BYTES: Final = 3 * MIB
PAGE_MESSAGE_TEXT_BYTES: Final = 16 * KIB
LINE_MESSAGES: Final = 1000  # of one line; more would pass a page's bounds
LINE_BLOCKS: Final = 1000  # of one list in a line: as many messages as a line may have
LARGE_LINE_BYTES: Final = MIB  # decoded in one go, a shorter line takes 40 MB at most
LARGE_LINE_COMMAS: Final = 100_000  # 20 MB; a large line with more is read member by member
REPAIR_STEPS: Final = 250_000  # in a damaged line, 0.3 s of work; real ones take thousands
READ_BYTES: Final = MIB  # one read of a scan; larger ones are no faster (performance §2)
LINE_OBJECTS: Final = 1000  # glued on one line; crashes leave two or three
FIRST_READ_BYTES: Final = 64 * KIB  # of a page: a screenful; further reads grow fourfold
SCAN_WINDOW_BYTES: Final = 128 * KIB  # stays in the cache between the passes of a search
LINE_BYTES: Final = 32 * MIB  # a longer line is stepped over, never held
CONTEXT_WALK_BYTES: Final = LINE_BYTES  # read again behind a checkpoint; a sweep is near
MESSAGE_PIECE_CODE_POINTS: Final = 64 * KIB  # at most 256 KiB of UTF-8
REMEMBERED_UUIDS: Final = 8192  # 32 KiB of a state; a summary is about one of the last lines
PENDING_SUMMARIES: Final = 64  # about lines still to come; old builds wrote up to some twenty
PROVISIONAL_LINES: Final = 256  # kept apart, so that each can be taken back at its own time
MODELS: Final = 64  # of one session; more would be a damaged file
LABEL_BYTES: Final = 256  # tool_name, model, call_id on a page
SEARCH_DEFAULT: Final = 50
SEARCH_MAX: Final = 1000
SEARCH_BYTES: Final = 64 * MIB
SEARCH_FLUSH_SECONDS: Final = 0.02  # a hit waits for others no longer than this
SNIPPET_CODE_POINTS: Final = 80  # on each side of the match
SNIPPET_CODE_POINTS_MAX: Final = 4000  # a hit of 32 KiB and 80 KiB of ranges, far below 4 MiB
FIRST_PROMPT_BYTES: Final = 4096
TITLE_CODE_POINTS: Final = 200
HEAD_BYTES: Final = 4 * KIB  # of a file: enough to tell a rewritten one, one disk block
EXACT_CHECKPOINTS: Final = 4096  # changes of model kept one by one; real files have few
CHECKPOINT_BYTES: Final = MIB  # beyond those: what a page may have to read first
USAGE_BLOCK_LINES: Final = 256  # few enough to rewrite the last block at each append
BLOCKS_SPILL: Final = 2000  # of one transcript in memory, 10 MB; more go to the file
LEDGER_SPILL_ENTRIES: Final = 100_000  # 25 MB in memory; more go to the file while parsing
LEDGER_BLOCK_ENTRIES: Final = 32  # 700 bytes, decoded whole when one of them is looked up
SWEEP_READ_BYTES: Final = 256 * KIB  # stays in the second cache while its lines are parsed
SWEEP_INTERVAL_SECONDS: Final = 10.0  # a poke within it starts no further sweep
SWEEP_WORKER_BYTES: Final = 100 * MIB  # more dirty bytes than this are swept outside
SWEEP_COMMIT_TRANSCRIPTS: Final = 64
SWEEP_COMMIT_BYTES: Final = 64 * MIB  # a batch of large files is committed sooner
QUICK_WRITE_MS: Final = 20  # a sweep shows what it found rather than wait longer
SLOW_SWEEP_REST_SECONDS: Final = 0.002  # per block of lines, about twice what it takes
BACKGROUND_SLICE_SECONDS: Final = 0.005  # of work, then as much rest: calls stay quick
WORKER_NICE: Final = 10  # calls come first (techniques §3)
WORKER_RETRY_SECONDS: Final = (1.0, 4.0, 16.0)  # then the server sweeps itself, slowly
WORKER_STOP_SECONDS: Final = 2.0  # between asking a worker to end and killing it
RANKED_COMMIT_MESSAGES: Final = 20_000
RANKED_HASH_BYTES: Final = 8 * MIB  # 1.27x the build rate of the default (techniques §2)
RANKED_COMMIT_BYTES: Final = 8 * MIB  # of text in memory, then in one transaction
RANKED_COMMIT_SECONDS: Final = 0.4  # other writers of the file wait no longer
RANKED_YIELD_SECONDS: Final = 0.05  # between transactions: a writer that waits gets its turn
RANKED_PORTION_BYTES: Final = 256 * KIB  # of a transcript, or one line, never torn apart
RANKED_PART_MESSAGES: Final = 2**14  # of one ordinal: the low bits of a row's number
RANKED_PURGE_MESSAGES: Final = 20_000  # deleted in one transaction, some 60 ms
RANKED_MERGE_MESSAGES: Final = 20_000  # a fill of so many is worth merging its segments
RANKED_MERGE_PAGES: Final = 500  # of one merging step, some 30 ms
FOLLOW_WORKER_BYTES: Final = 8 * MIB  # more than this is followed outside: calls stay quick
RANKED_OPEN_ROWS: Final = 1024  # of a first look at the best matches
RANKED_SAMPLE: Final = 64  # one part in so many tells what a good score is
RANKED_HALVES_SAMPLE: Final = 64  # matches in it, from which on a second thread pays: 0.5 ms
HIT_READ_BYTES: Final = 8 * KIB  # of a hit's transcript at first: most lines fit
RANKED_NEAR_ROWS: Final = 50_000  # held to settle a run of near ties; far above any seen
FOLLOW_TAIL_BYTES: Final = 256 * KIB  # of a line not ended yet, read again as it grows: 1 ms
FOLLOW_QUIET_SECONDS: Final = 1.0  # a longer one that grew no more may lack its newline
FOLLOW_LATENCY_SECONDS: Final = 0.25
EVENT_STEP_MS: Final = 20  # of quiet that ends a group of file events
EVENT_GROUP_MS: Final = 100  # a group waits no longer: well below the latency of a follow
EVENT_CHECK_MS: Final = 200  # between looks whether a root appeared or vanished
EVENT_DOUBT_SECONDS: Final = 60.0  # then a sweep finds what events may have missed
EVENT_RENEW_SECONDS: Final = 600.0  # of one watcher; making it tells whether watches ran out
EVENT_RETRY_SECONDS: Final = 60.0  # polling tries for file events again
POLL_SECONDS: Final = 0.1  # between looks at followed files, where there are no events
POLL_SWEEP_SECONDS: Final = 2.0  # between sweeps, where there are no events
MOVED_SECONDS: Final = 1.0  # a followed file that was moved may take to turn up again
