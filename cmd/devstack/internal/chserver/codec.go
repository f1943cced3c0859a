package chserver

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// blockSize is how much of a result goes into one compressed block, as in ClickHouse.
const blockSize = 1 << 20

// flushWriteCloser is a compressor.
type flushWriteCloser interface {
	io.WriteCloser
	Flush() error
}

// encodings lists the content encodings in the order of preference.
func encodings() []string { return []string{"zstd", "lz4", "br", "gzip", "deflate"} }

// negotiate picks the encoding of an answer from Accept-Encoding, "" for none. A client's order decides.
func negotiate(accept string) string {
	for item := range strings.SplitSeq(accept, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(item), ";")
		if strings.ReplaceAll(weight, " ", "") != "q=0" && slices.Contains(encodings(), strings.ToLower(name)) {
			return strings.ToLower(name)
		}
	}
	return ""
}

// encoder compresses an answer in a content encoding.
func encoder(encoding string, w io.Writer) (flushWriteCloser, error) {
	switch encoding {
	case "gzip":
		return gzip.NewWriterLevel(w, gzip.BestSpeed)
	case "deflate":
		return zlib.NewWriterLevel(w, flate.BestSpeed)
	case "br":
		return brotli.NewWriterLevel(w, brotli.BestSpeed), nil
	case "zstd":
		return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	case "lz4":
		return lz4.NewWriter(w), nil
	default:
		return nil, fmt.Errorf("unknown content encoding %q", encoding)
	}
}

// decoder reads a body in a content encoding; "" and "identity" leave it as it is.
func decoder(encoding string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(encoding) {
	case "", "identity":
		return r, nil
	case "gzip":
		return gzip.NewReader(r)
	case "deflate":
		return zlib.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		reader, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return reader.IOReadCloser(), nil
	case "lz4":
		return lz4.NewReader(r), nil
	default:
		return nil, fmt.Errorf("unknown content encoding %q", encoding)
	}
}

// blockReader reads ClickHouse's own compressed blocks (CityHash, header, LZ4 or ZSTD). They end with the body.
type blockReader struct {
	blocks *compress.Reader
}

// newBlockReader reads blocks from r.
func newBlockReader(r io.Reader) *blockReader { return &blockReader{blocks: compress.NewReader(r)} }

// Read implements io.Reader; the body's end between two blocks is io.EOF.
func (b *blockReader) Read(p []byte) (int, error) {
	n, err := b.blocks.Read(p)
	if err != nil && errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return n, io.EOF
	}
	return n, err
}

// blockWriter writes ClickHouse's own compressed blocks.
type blockWriter struct {
	out    io.Writer
	blocks *compress.Writer
	buffer []byte
}

// newBlockWriter compresses by the method that the setting network_compression_method names.
func newBlockWriter(w io.Writer, method string) (*blockWriter, error) {
	methods := map[string]compress.Method{
		"": compress.LZ4, "LZ4": compress.LZ4, "LZ4HC": compress.LZ4HC, "ZSTD": compress.ZSTD, "NONE": compress.None,
	}
	chosen, ok := methods[strings.ToUpper(method)]
	if !ok {
		return nil, fmt.Errorf("unknown compression method %q", method)
	}
	return &blockWriter{out: w, blocks: compress.NewWriter(compress.LevelZero, chosen)}, nil
}

// Write implements io.Writer.
func (b *blockWriter) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		n := min(len(p), blockSize-len(b.buffer))
		b.buffer = append(b.buffer, p[:n]...)
		p = p[n:]
		if len(b.buffer) == blockSize {
			if err := b.Flush(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

// Flush writes what is gathered as a block of its own.
func (b *blockWriter) Flush() error {
	if len(b.buffer) == 0 {
		return nil
	}
	if err := b.blocks.Compress(b.buffer); err != nil {
		return fmt.Errorf("compress block: %w", err)
	}
	b.buffer = b.buffer[:0]
	_, err := b.out.Write(b.blocks.Data)
	return err
}

// Close writes the last block; the writer below stays open.
func (b *blockWriter) Close() error { return b.Flush() }
