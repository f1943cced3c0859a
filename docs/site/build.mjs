// Builds the site, and fails on what VitePress only prints: it ends with 0 when a page throws while it is rendered.
import { spawn } from 'node:child_process'
import { cpSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

// Pages ask for Vue, which is found below this folder alone: so they are copied into it.
const docs = path.dirname(import.meta.dirname)
const pages = path.join(import.meta.dirname, 'pages')
rmSync(pages, { recursive: true, force: true })
for (const name of readdirSync(docs).filter((name) => name !== path.basename(import.meta.dirname))) {
  cpSync(path.join(docs, name), path.join(pages, name), { recursive: true })
}
// These are beside the folder docs. Their links lead into it.
for (const name of ['CONTRIBUTING.md', 'CHANGELOG.md']) {
  const text = readFileSync(path.join(docs, '..', name), 'utf8').replaceAll('](docs/', '](')
  writeFileSync(path.join(pages, name.toLowerCase()), text)
}

const vitepress = new URL('node_modules/vitepress/bin/vitepress.js', import.meta.url)
const build = spawn(process.execPath, [vitepress.pathname, 'build', ...process.argv.slice(2)], {
  cwd: import.meta.dirname,
  stdio: ['ignore', 'pipe', 'pipe'],
})
let printed = ''
for (const stream of [build.stdout, build.stderr]) {
  stream.setEncoding('utf8')
  stream.on('data', (text) => {
    printed += text
    process.stdout.write(text)
  })
}
build.on('close', (code) => {
  const wrong = printed.split('\n').filter((line) => /\b\w*(Error|Warning)\b|is not loaded|\[vite\] warn/.test(line))
  if (code !== 0 || wrong.length > 0) {
    console.error(['The site was not built. See above.', ...wrong].join('\n'))
    process.exit(1)
  }
  console.log('The site is in docs/site/dist. To look at it: npm --prefix docs/site run preview')
})
