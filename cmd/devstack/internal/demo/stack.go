package demo

import (
	"fmt"
	"hash/fnv"
	"strings"
)

func socketFrames(top ...string) []string {
	frames := make([]string, 0, len(top)+3)
	for _, f := range top {
		frames = append(frames, "java.base/"+f)
	}
	return append(frames,
		"java.base/java.net.Socket.connect(Socket.java:751)",
		"org.apache.hc.client5.http.impl.io.DefaultHttpClientConnectionOperator.connect(DefaultHttpClientConnectionOperator.java:172)",
		"org.apache.hc.client5.http.impl.classic.InternalHttpClient.doExecute(InternalHttpClient.java:174)",
	)
}

func httpFrames() []string {
	return []string{
		"org.apache.camel.component.http.HttpProducer.populateHttpOperationFailedException(HttpProducer.java:468)",
		"org.apache.camel.component.http.HttpProducer.process(HttpProducer.java:264)",
	}
}

func jacksonFrames() []string {
	return []string{
		"com.fasterxml.jackson.core.JsonParser._constructError(JsonParser.java:2481)",
		"com.fasterxml.jackson.core.json.ReaderBasedJsonParser._handleOddName(ReaderBasedJsonParser.java:1830)",
		"com.fasterxml.jackson.databind.ObjectMapper._readMapAndClose(ObjectMapper.java:4706)",
	}
}

func postgresFrames() []string {
	return []string{
		"org.postgresql.core.v3.QueryExecutorImpl.receiveErrorResponse(QueryExecutorImpl.java:2725)",
		"org.postgresql.jdbc.PgPreparedStatement.executeUpdate(PgPreparedStatement.java:152)",
		"com.zaxxer.hikari.pool.ProxyPreparedStatement.executeUpdate(ProxyPreparedStatement.java:61)",
	}
}

// stack prints a failure as a Java runtime does: the wrapping exception of the
// routing engine, then the cause with library frames over the route's own ones.
// The same failure of the same route always has the same frames.
func stack(r *route, f failure, exchangeID string) string {
	class := camel(r.id)
	pkg := "com.nordhaus." + r.app
	client := camel(r.partner) + "Client"

	var b strings.Builder
	fmt.Fprintf(&b, "org.apache.camel.CamelExecutionException: Exception occurred during execution on the exchange: Exchange[%s]\n", exchangeID)
	for _, frame := range []string{
		"org.apache.camel.CamelExecutionException.wrapCamelExecutionException(CamelExecutionException.java:45)",
		"org.apache.camel.support.AbstractExchange.setException(AbstractExchange.java:602)",
		"org.apache.camel.processor.errorhandler.RedeliveryErrorHandler$SimpleTask.handleException(RedeliveryErrorHandler.java:617)",
	} {
		fmt.Fprintf(&b, "\tat %s\n", frame)
	}
	fmt.Fprintf(&b, "Caused by: %s: %s\n", f.errorType, f.message)
	for _, frame := range f.library {
		fmt.Fprintf(&b, "\tat %s\n", frame)
	}
	fmt.Fprintf(&b, "\tat %s.client.%s.%s(%s.java:%d)\n", pkg, client, f.own, client, line(r.id, client, f.own))
	fmt.Fprintf(&b, "\tat %s.%sProcessor.process(%sProcessor.java:%d)\n", pkg, class, class, line(r.id, class, "process"))
	fmt.Fprintf(&b, "\tat %s.%sRoute.lambda$configure$0(%sRoute.java:%d)\n", pkg, class, class, line(r.id, class, "configure"))
	for _, frame := range []string{
		"org.apache.camel.support.processor.DelegateSyncProcessor.process(DelegateSyncProcessor.java:66)",
		"org.apache.camel.processor.Pipeline$PipelineTask.run(Pipeline.java:109)",
		"org.apache.camel.impl.engine.DefaultReactiveExecutor$Worker.schedule(DefaultReactiveExecutor.java:187)",
		"java.base/java.lang.Thread.run(Thread.java:1583)",
	} {
		fmt.Fprintf(&b, "\tat %s\n", frame)
	}
	fmt.Fprintf(&b, "\t... %d more\n", 11+line(r.id, "more", "")%17)
	return b.String()
}

// camel turns "order-to-erp" into "OrderToErp".
func camel(id string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(id, "-") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// line is the line number of a method, always the same one.
func line(parts ...string) int {
	h := fnv.New32a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
	}
	return 24 + int(h.Sum32()%310)
}
