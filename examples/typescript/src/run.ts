// Runs an example: what goes wrong is one line, and the exit code is 1.

// Whoever reads our output has enough: that is no error.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : 1);
});

/** Ends the process when `example` has ended; open connections do not hold it. */
export async function run(example: (...words: string[]) => Promise<void>): Promise<never> {
  try {
    await example(...process.argv.slice(2));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    console.error(text.split("\n", 1)[0]);
    process.exit(1);
  }
  process.exit();
}
